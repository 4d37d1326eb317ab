//! Postman collections v2.1.
//!
//! Owns the tree: folders, what requests inherit from them, the order. A request's parts are read beside:
//! `address.rs`, `body.rs`, `auth.rs`, and `script.rs` for the statuses that tests expect. What Newman would send
//! is what is sent, its own header fields aside; where that is not so, a note says it.

mod address;
mod auth;
mod body;
mod script;

use std::collections::BTreeSet;
use std::path::Path;

use onehop_load::plan::{Expect, Protocol, Request};
use serde_json::Value;

use super::kind::of_json;
use super::limits::{FOLDERS_MAX, NAME_LETTERS_MAX, REQUEST_BYTES_MAX, REQUESTS_MAX};
use super::notes::Notes;
use super::problem::{Problem, printable};
use super::variables::{Variables, text_of};
use super::{Collection, check, nowhere};

/// Reads a collection whose files are looked for in the folder.
pub(super) fn read(text: &str, folder: &Path, variables: &mut Variables) -> Result<Collection, Problem> {
    let value: Value = serde_json::from_str(text).map_err(|error| of_json(&error))?;
    // As Postman's own interface gives it, the collection is wrapped once more.
    let (root, pointer) = match value.get("collection") {
        Some(inner) if inner.get("item").is_some() => (inner, "/collection"),
        _ => (&value, ""),
    };
    variables.add_collection(root.get("variable").unwrap_or(&Value::Null));
    let mut reader = Reader::new(folder, variables);
    reader.learn_names(root, 0);
    let inherited = reader.inherit(root, &Inherited::default(), "the collection");
    reader.items(root, &inherited, &format!("{pointer}/item"), 0)?;
    if reader.requests.is_empty() {
        return Err(Problem::at(
            "/item",
            "the collection holds no request",
            "Add one in Postman and export it.",
        ));
    }
    reader.note_scripts();
    let name = printable(&root.pointer("/info/name").map(text_of).unwrap_or_default());
    Ok(Collection {
        name,
        requests: reader.requests,
        notes: reader.notes.into_lines(),
        varying: Default::default(),
    })
}

/// What goes on while a collection is read.
struct Reader<'a> {
    folder: &'a Path,
    variables: &'a mut Variables,
    requests: Vec<Request>,
    notes: Notes,
    /// Bytes of all requests until now.
    bytes: usize,
    /// Bytes of the files that were read for them.
    file_bytes: usize,
    /// Scripts that do more than expect a status, and whose the first is.
    scripts: usize,
    first_script: String,
}

/// What a request has from the folders around it and the collection.
#[derive(Debug, Clone, Default)]
struct Inherited<'v> {
    /// The folders' names, each with its ` / `.
    names: String,
    auth: Option<&'v Value>,
    expect: Option<Expect>,
}

impl<'a> Reader<'a> {
    fn new(folder: &'a Path, variables: &'a mut Variables) -> Reader<'a> {
        Reader {
            folder,
            variables,
            requests: Vec::new(),
            notes: Notes::default(),
            bytes: 0,
            file_bytes: 0,
            scripts: 0,
            first_script: String::new(),
        }
    }

    /// Which variables scripts would set, before the first one is missed.
    fn learn_names(&mut self, holder: &Value, depth: usize) {
        for (_, source) in scripts_of(holder) {
            for name in script::read(&source).sets {
                self.variables.set_by_script(&name);
            }
        }
        if depth <= FOLDERS_MAX {
            for item in list_of(holder, "item") {
                self.learn_names(item, depth + 1);
            }
        }
    }

    fn items(
        &mut self,
        holder: &Value,
        inherited: &Inherited<'_>,
        pointer: &str,
        depth: usize,
    ) -> Result<(), Problem> {
        for (index, item) in list_of(holder, "item").iter().enumerate() {
            let pointer = format!("{pointer}/{index}");
            let own = item.get("name").map(text_of).unwrap_or_default();
            let own: String = printable(&own).chars().take(NAME_LETTERS_MAX).collect();
            let name = format!("{}{own}", inherited.names);
            if item.get("item").is_some() {
                if depth == FOLDERS_MAX {
                    let cause = format!("folders lie within each other more than {FOLDERS_MAX} deep");
                    return Err(Problem::at(
                        format!("the folder `{own}`"),
                        cause,
                        "Move the requests further up.",
                    ));
                }
                let mut within = self.inherit(item, inherited, &format!("the folder `{name}`"));
                within.names = format!("{name} / ");
                self.items(item, &within, &format!("{pointer}/item"), depth + 1)?;
                continue;
            }
            if self.requests.len() == REQUESTS_MAX {
                let cause = format!("there are more than {REQUESTS_MAX} requests");
                return Err(Problem::at(pointer, cause, "Split the collection."));
            }
            let inherited = self.inherit(item, inherited, &format!("`{name}`"));
            let request = self.request(item, &name, &inherited);
            let place =
                if name.trim().is_empty() { pointer } else { format!("request `{name}` ({pointer})") };
            self.requests.push(request.map_err(|problem| problem.placed(place))?);
        }
        Ok(())
    }

    /// What those within have of this folder, or a request of its own place in the tree.
    fn inherit<'v>(&mut self, holder: &'v Value, outer: &Inherited<'v>, whose: &str) -> Inherited<'v> {
        let mut inherited = outer.clone();
        if let Some(auth) = holder.get("auth").filter(|auth| !auth.is_null()) {
            inherited.auth = Some(auth);
        }
        let mut statuses = BTreeSet::new();
        for (listen, source) in scripts_of(holder) {
            let read = script::read(&source);
            let does_more = !read.is_understood || (listen != "test" && !read.is_empty);
            if listen == "test" {
                statuses.extend(read.statuses);
            }
            if does_more {
                self.scripts += 1;
                if self.first_script.is_empty() {
                    self.first_script = whose.to_owned();
                }
            }
        }
        if !statuses.is_empty() {
            inherited.expect = Some(Expect::Exactly(statuses.into_iter().collect()));
        } else if let Some(status) = self.saved_status(holder, whose) {
            inherited.expect = Some(Expect::Exactly(vec![status]));
        }
        inherited
    }

    /// The status of the first saved answer.
    fn saved_status(&mut self, item: &Value, whose: &str) -> Option<u16> {
        let code = |response: &Value| response.get("code").and_then(Value::as_u64);
        let codes: Vec<u16> = list_of(item, "response")
            .iter()
            .filter_map(code)
            .filter_map(|code| u16::try_from(code).ok())
            .filter(|code| (100..600).contains(code))
            .collect();
        let first = *codes.first()?;
        if codes.iter().any(|code| *code != first) {
            self.notes.push(&format!(
                "{whose} has saved answers of several statuses: {first}, the first, is expected"
            ));
        }
        Some(first)
    }

    fn request(&mut self, item: &Value, name: &str, inherited: &Inherited<'_>) -> Result<Request, Problem> {
        let Some(request) = item.get("request").filter(|request| request.is_string() || request.is_object())
        else {
            return Err(Problem::new(
                "it holds neither a request nor further items",
                "Remove it from the collection, or give it a request.",
            ));
        };
        let method = request.get("method").and_then(Value::as_str).unwrap_or("GET");
        let method = self.variables.fill(method)?.to_uppercase();
        let mut fields = self.fields(request.get("header").unwrap_or(&Value::Null))?;
        let auth = request.get("auth").filter(|auth| !auth.is_null()).or(inherited.auth);
        let in_query = match auth {
            Some(auth) => self.authorize(auth, &mut fields, name)?,
            None => None,
        };
        let url = if request.is_string() { request } else { request.get("url").unwrap_or(&Value::Null) };
        let url = self.url(url, in_query, name)?;
        let keeps_body = item.pointer("/protocolProfileBehavior/disableBodyPruning");
        let keeps_body = keeps_body.and_then(Value::as_bool).unwrap_or(false);
        // Newman leaves the bodies of these out, whatever stands in the file, unless it is told otherwise.
        let has_none = matches!(method.as_str(), "GET" | "COPY" | "HEAD" | "PURGE" | "UNLOCK");
        let body = match request.get("body") {
            Some(body) if keeps_body || !has_none => self.body(body, &mut fields, name)?,
            _ => None,
        };
        let request = Request {
            name: if name.trim().is_empty() { format!("{method} {url}") } else { name.to_owned() },
            url,
            address: nowhere(),
            tls: None,
            protocol: Protocol::Http1,
            method,
            fields,
            body,
            weight: 1,
            expect: inherited.expect.clone().unwrap_or(Expect::Success),
        };
        self.spend(&request)?;
        check(&request, "Mend it in Postman, or the variable in it.")?;
        Ok(request)
    }

    /// Counts what a request takes: a folder's token and a file stand in many requests.
    fn spend(&mut self, request: &Request) -> Result<(), Problem> {
        let fields: usize = request.fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.bytes += request.url.path.len() + request.body.as_ref().map_or(0, Vec::len) + fields;
        if self.bytes <= REQUEST_BYTES_MAX {
            return Ok(());
        }
        let size = REQUEST_BYTES_MAX / (1024 * 1024);
        let cause = format!("the requests until here take more than {size} MiB");
        Err(Problem::new(cause, "Split the collection, or send smaller files."))
    }

    fn fields(&mut self, header: &Value) -> Result<Vec<(String, String)>, Problem> {
        let mut fields = Vec::new();
        if let Some(lines) = header.as_str() {
            for (name, value) in lines.lines().filter_map(|line| line.split_once(':')) {
                fields.push((self.variables.fill(name.trim())?, self.variables.fill(value.trim())?));
            }
        }
        for field in header.as_array().into_iter().flatten().filter(|field| !is_disabled(field)) {
            let name = self.variables.fill(&field.get("key").map(text_of).unwrap_or_default())?;
            let value = self.variables.fill(&field.get("value").map(text_of).unwrap_or_default())?;
            // Postman's editor leaves an empty row behind.
            if !name.trim().is_empty() {
                fields.push((name.trim().to_owned(), value));
            }
        }
        Ok(fields)
    }

    fn note_scripts(&mut self) {
        let what = match self.scripts {
            0 => return,
            1 => format!("A script ({}) is", self.first_script),
            count => format!("{count} scripts (the first: {}) are", self.first_script),
        };
        self.notes.push(&format!(
            "{what} not run. Of tests the expected statuses are read, where they stand there as numbers; what else \
             a script checks is not checked, what it sets is not set"
        ));
    }
}

/// The scripts of a request, folder or collection: what they listen to, and their text.
fn scripts_of(holder: &Value) -> Vec<(String, String)> {
    let mut scripts = Vec::new();
    for event in list_of(holder, "event").iter().filter(|event| !is_disabled(event)) {
        let listen = event.get("listen").map(text_of).unwrap_or_default();
        let exec = event.pointer("/script/exec").or_else(|| event.get("script"));
        let source = match exec {
            Some(Value::String(source)) => source.clone(),
            Some(Value::Array(lines)) => lines.iter().map(text_of).collect::<Vec<_>>().join("\n"),
            _ => continue,
        };
        scripts.push((listen, source));
    }
    scripts
}

fn is_disabled(entry: &Value) -> bool {
    entry.get("disabled").and_then(Value::as_bool).unwrap_or(false)
}

/// The array of this name; empty where there is none.
fn list_of<'v>(holder: &'v Value, name: &str) -> &'v [Value] {
    holder.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
