//! Prints how an application would be measured today and with onehop, without starting it: `detect FOLDER`.

use std::path::PathBuf;

use onehop_try::{Environment, detect};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).map(PathBuf::from).ok_or("name a folder")?;
    let setup = detect(&folder, &Environment { is_dry_run: true, ..Environment::look() })?;
    println!("{}", setup.found.description);
    for route in &setup.routes {
        println!("  {}", route.path);
    }
    Ok(())
}
