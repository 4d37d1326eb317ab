//! The list of what is inside, as CycloneDX 1.6 in JSON (<https://cyclonedx.org/docs/1.6/json/>).
//!
//! It tells what [`Inside`] found and asks nobody else.

use serde_json::{Value, json};

use crate::Outcome;

use super::architecture::Architecture;
use super::inside::{Crate, Inside};
use super::release::Release;
use super::sums;

/// The document's bytes.
pub(super) fn write(
    release: &Release,
    architecture: Architecture,
    inside: &Inside,
    program: &[u8],
) -> Outcome<Vec<u8>> {
    let is_program = |found: &&Crate| found.name == "onehop";
    let mut components: Vec<Value> =
        inside.crates.iter().filter(|found| !is_program(found)).map(component).collect();
    components.push(
        json!({ "type": "library", "bom-ref": "rust-std", "name": "rust-std", "version": inside.rust,
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
        "description": "Rust's standard library, linked statically" }),
    );
    components.push(json!({ "type": "library", "bom-ref": "musl", "name": "musl",
        "licenses": [{ "expression": "MIT" }],
        "description": "The C library that comes with Rust's target, linked statically" }));
    let dependencies: Vec<Value> = inside
        .crates
        .iter()
        .map(|found| {
            let mut needs: Vec<String> =
                found.needs.iter().filter_map(|&place| inside.crates.get(place)).map(reference).collect();
            if is_program(&found) {
                needs.extend(["rust-std".to_owned(), "musl".to_owned()]);
            }
            json!({ "ref": reference(found), "dependsOn": needs })
        })
        .collect();
    let own = inside.crates.iter().find(is_program).map_or_else(|| "onehop".to_owned(), reference);
    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": release.date("+%Y-%m-%dT%H:%M:%SZ")?,
            "component": {
                "type": "application", "bom-ref": own, "name": "onehop", "version": release.version,
                "licenses": [{ "expression": "Apache-2.0" }],
                "hashes": [{ "alg": "SHA-256", "content": sums::sha256_hex(program) }],
                "properties": [{ "name": "onehop:target", "value": architecture.triple() }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    document["serialNumber"] = Value::from(serial_number(document.to_string().as_bytes()));
    Ok(format!("{}\n", serde_json::to_string_pretty(&document)?).into_bytes())
}

fn component(found: &Crate) -> Value {
    let mut component = json!({
        "type": "library", "bom-ref": reference(found), "name": found.name, "version": found.version,
    });
    if let Some(licence) = &found.licence {
        component["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(checksum) = &found.checksum {
        component["purl"] = Value::from(reference(found));
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &found.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

/// The package URL, which crates of this workspace have only as a name within the document.
fn reference(found: &Crate) -> String {
    let version = found.version.replace('+', "%2B");
    match found.is_foreign() {
        true => format!("pkg:cargo/{}@{version}", found.name),
        false => format!("{}@{version}", found.name),
    }
}

/// A UUID of version 8 (RFC 9562 section 5.8) that follows from the document.
fn serial_number(document: &[u8]) -> String {
    let mut bytes = sums::sha256(document);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = "urn:uuid:".to_owned();
    for (index, byte) in bytes.iter().take(16).enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
