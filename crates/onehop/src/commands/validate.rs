//! `onehop validate`: everything that is wrong with a configuration, and nothing else.

use std::path::Path;

use onehop_config::checked::Checked;
use onehop_server::control::Refusal;

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
    tell(&file.path.display().to_string(), &loaded.checked, None)?;
    Ok(())
}

/// Says that it is sound, and what it holds; an error where a start would refuse it. `packed_below` is the base of a pack.
pub(super) fn tell(name: &str, checked: &Checked, packed_below: Option<&Path>) -> Result<(), Failure> {
    let refusals = onehop_server::control::check(checked, packed_below);
    if !refusals.is_empty() {
        let shown = refusals.iter().map(|Refusal { line, reason }| match line {
            Some(line) => format!("{name}:{line}: error: {reason}\n"),
            None => format!("{name}: error: {reason}\n"),
        });
        let sum = counted(refusals.len() as u64, "reason");
        return Err(Failure::drawn(format!(
            "{}\n`onehop run` would refuse to start: {sum}",
            shown.collect::<String>()
        )));
    }
    let addresses: Vec<String> =
        checked.listeners.iter().map(|listener| configuration::show_address(&listener.address)).collect();
    let apps: Vec<&str> = checked.apps().iter().map(|app| app.name.as_str()).collect();
    let apps = if apps.is_empty() { String::new() } else { format!(", running {}", apps.join(", ")) };
    super::standard_output::print(&format!(
        "{name} is sound: {}, listening on {}{apps}\n",
        counted(checked.sites.len() as u64, "site"),
        addresses.join(", ")
    ));
    Ok(())
}
