//! `onehop adapt`: an nginx.conf as an Onehopfile, on standard output.

use onehop_config::FileSource;

use super::standard_output::print;
use crate::arguments::Adapt;
use crate::failure::Failure;
use crate::report::write_line;
use crate::units::counted;

pub(crate) fn adapt(arguments: &Adapt) -> Result<(), Failure> {
    let written = &arguments.file;
    let path = std::path::absolute(written)
        .map_err(|error| Failure::failed(format!("cannot name {}: {error}", written.display())))?;
    let adapted = onehop_adapt::adapt(&path, &FileSource).map_err(|refusal| {
        Failure::wrong(format!("{}: {}; {}", refusal.place(), refusal.cause, refusal.next))
    })?;
    print(&adapted.onehopfile);
    if adapted.left_out > 0 {
        let directives = counted(adapted.left_out as u64, "directive");
        write_line(&format!("{directives} could not be carried over: look for NOT CARRIED OVER"));
    }
    Ok(())
}
