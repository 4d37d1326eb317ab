//! `onehop validate`: everything that is wrong with a configuration, and nothing else.

use onehop_config::checked::Checked;

use crate::arguments::Validate;
use crate::configuration;
use crate::failure::Failure;
use crate::problems::{self, Look};
use crate::report::write_line;
use crate::units::counted;

pub(crate) fn validate(arguments: &Validate) -> Result<(), Failure> {
    let file = configuration::find(arguments.file.named(), "onehop validate FILE")?;
    let loaded = configuration::load(&file)?;
    if !loaded.warnings.is_empty() {
        write_line(problems::draw(&loaded.warnings, Look::of_standard_error()).trim_end());
    }
    tell(&file.path.display().to_string(), &loaded.checked)?;
    if let Err(tls) = configuration::refuse_tls(&loaded.checked) {
        write_line(&format!("warning: `onehop run` would not start it yet.\n{tls}"));
    }
    Ok(())
}

/// Says that it is sound, and what it holds.
pub(super) fn tell(name: &str, checked: &Checked) -> Result<(), Failure> {
    onehop_server::control::check_memory(checked).map_err(Failure::wrong)?;
    let addresses: Vec<String> =
        checked.listeners.iter().map(|listener| configuration::show_address(&listener.address)).collect();
    let apps: Vec<&str> = checked.apps().iter().map(|app| app.name.as_str()).collect();
    let apps = if apps.is_empty() { String::new() } else { format!(", running {}", apps.join(", ")) };
    super::pages::print(&format!(
        "{name} is sound: {}, listening on {}{apps}\n",
        counted(checked.sites.len() as u64, "site"),
        addresses.join(", ")
    ));
    Ok(())
}
