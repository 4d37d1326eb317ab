//! A request's body in each of Postman's modes, and the Content-Type that follows from it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;

use serde_json::Value;

use super::{Reader, is_disabled, list_of};
use crate::collection::encode;
use crate::collection::limits::REQUEST_BYTES_MAX;
use crate::collection::problem::Problem;
use crate::collection::variables::text_of;

type Fields = Vec<(String, String)>;

impl Reader<'_> {
    pub(super) fn body(
        &mut self,
        body: &Value,
        fields: &mut Fields,
        request: &str,
    ) -> Result<Option<Vec<u8>>, Problem> {
        let mode = body.get("mode").map(text_of).unwrap_or_default();
        let content = body.get(&mode).unwrap_or(&Value::Null);
        if is_disabled(body) || content.is_null() {
            return Ok(None);
        }
        match mode.as_str() {
            "raw" => self.raw(body, content, fields),
            "urlencoded" => self.urlencoded(content, fields),
            "formdata" => self.formdata(content, fields, request),
            "graphql" => self.graphql(content, fields).map(Some),
            "file" => {
                let source = content.get("src").map(text_of).unwrap_or_default();
                let bytes = self.file(&source, request)?;
                if bytes.is_some() {
                    set_media_type(fields, &media_of_file(&source));
                }
                Ok(bytes)
            }
            other => {
                self.notes.push(&format!(
                    "`{request}`: a body of the mode `{other}` is not known, it is asked without"
                ));
                Ok(None)
            }
        }
    }

    fn raw(
        &mut self,
        body: &Value,
        content: &Value,
        fields: &mut Fields,
    ) -> Result<Option<Vec<u8>>, Problem> {
        let mut text = self.variables.fill(&text_of(content))?;
        if text.is_empty() {
            return Ok(None);
        }
        let language = body.pointer("/options/raw/language").and_then(Value::as_str);
        let media = match language {
            Some("json") => "application/json",
            Some("javascript") => "application/javascript",
            Some("html") => "text/html",
            Some("xml") => "application/xml",
            _ => "text/plain",
        };
        let is_json = language == Some("json") || (language.is_none() && media_type(fields).contains("json"));
        if is_json && (text.contains("//") || text.contains("/*")) {
            text = without_comments(&text);
        }
        set_media_type(fields, media);
        Ok(Some(text.into_bytes()))
    }

    fn urlencoded(&mut self, content: &Value, fields: &mut Fields) -> Result<Option<Vec<u8>>, Problem> {
        // Values of one name stand together, where the first of them was.
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        if let Some(text) = content.as_str() {
            let text = self.variables.fill(text)?;
            set_media_type(fields, "application/x-www-form-urlencoded");
            return Ok(Some(text.into_bytes()).filter(|text| !text.is_empty()));
        }
        for entry in content.as_array().into_iter().flatten().filter(|entry| !is_disabled(entry)) {
            let key = self.variables.fill(&entry.get("key").map(text_of).unwrap_or_default())?;
            let value = self.variables.fill(&entry.get("value").map(text_of).unwrap_or_default())?;
            let place = *places.entry(key.clone()).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, values)) => values.push(value),
                None => groups.push((key, vec![value])),
            }
        }
        if groups.is_empty() {
            return Ok(None);
        }
        let mut text = String::new();
        for (key, values) in &groups {
            for value in values {
                if !text.is_empty() {
                    text.push('&');
                }
                encode::form(key, &mut text);
                text.push('=');
                encode::form(value, &mut text);
            }
        }
        set_media_type(fields, "application/x-www-form-urlencoded");
        Ok(Some(text.into_bytes()))
    }

    /// RFC 7578.
    fn formdata(
        &mut self,
        content: &Value,
        fields: &mut Fields,
        request: &str,
    ) -> Result<Option<Vec<u8>>, Problem> {
        let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
        let entries: &[Value] = content.as_array().map_or(&[], Vec::as_slice);
        for entry in entries.iter().filter(|entry| !is_disabled(entry)) {
            let key = self.variables.fill(&entry.get("key").map(text_of).unwrap_or_default())?;
            let own = entry.get("contentType").and_then(Value::as_str).filter(|own| !own.is_empty());
            let head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(&key));
            if entry.get("type").and_then(Value::as_str) != Some("file") {
                let value = self.variables.fill(&entry.get("value").map(text_of).unwrap_or_default())?;
                let media = own.map_or(String::new(), |own| format!("\r\nContent-Type: {own}"));
                parts.push((format!("{head}{media}"), value.into_bytes()));
                continue;
            }
            let sources = match entry.get("src") {
                Some(Value::String(source)) => vec![source.clone()],
                _ => list_of(entry, "src").iter().map(text_of).collect(),
            };
            for source in sources {
                let Some(bytes) = self.file(&source, request)? else { continue };
                let name = source.rsplit(['/', '\\']).next().unwrap_or_default();
                let name = quoted(entry.get("fileName").and_then(Value::as_str).unwrap_or(name));
                let media = own.map_or_else(|| media_of_file(&source), str::to_owned);
                parts.push((format!("{head}; filename=\"{name}\"\r\nContent-Type: {media}"), bytes));
            }
        }
        if parts.is_empty() {
            return Ok(None);
        }
        let mut boundary = String::from("--------------------------onehop");
        while parts.iter().any(|(_, bytes)| contains(bytes, boundary.as_bytes())) {
            boundary.push(fastrand::digit(10));
        }
        let mut out = Vec::new();
        for (head, bytes) in &parts {
            out.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        // A type that was written without the boundary could not be read by anybody.
        if !media_type(fields).contains("boundary=") {
            fields.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            set_media_type(fields, &format!("multipart/form-data; boundary={boundary}"));
        }
        Ok(Some(out))
    }

    fn graphql(&mut self, content: &Value, fields: &mut Fields) -> Result<Vec<u8>, Problem> {
        let mut members = Vec::new();
        for name in ["query", "operationName", "variables"] {
            match content.get(name) {
                None => {}
                Some(Value::String(text)) if name == "variables" => {
                    // Written as text that is JSON already; empty is the empty editor.
                    let text = self.variables.fill(text)?;
                    if !text.is_empty() {
                        members.push(format!("\"variables\":{text}"));
                    }
                }
                Some(Value::String(text)) => {
                    let text = Value::String(self.variables.fill(text)?);
                    members.push(format!("\"{name}\":{text}"));
                }
                Some(other) => {
                    let text = self.variables.fill(&other.to_string())?;
                    members.push(format!("\"{name}\":{text}"));
                }
            }
        }
        set_media_type(fields, "application/json");
        Ok(format!("{{{}}}", members.join(",")).into_bytes())
    }

    /// A file, looked for where the collection lies. One that is not there is noted, as Newman warns of it.
    fn file(&mut self, source: &str, request: &str) -> Result<Option<Vec<u8>>, Problem> {
        let source = self.variables.fill_once(source)?;
        if source.is_empty() {
            self.notes.push(&format!("`{request}`: a file to send is not chosen, it is asked without"));
            return Ok(None);
        }
        let path = self.folder.join(&source);
        let mut bytes = Vec::new();
        let left = REQUEST_BYTES_MAX.saturating_sub(self.file_bytes) as u64;
        // Only plain files: a pipe or a device may never end.
        let is_file = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
        let read =
            is_file && File::open(&path).and_then(|file| file.take(left + 1).read_to_end(&mut bytes)).is_ok();
        if !read {
            let path = path.display();
            self.notes.push(&format!("`{request}`: the file {path} cannot be read, it is asked without"));
            return Ok(None);
        }
        self.file_bytes += bytes.len();
        if self.file_bytes > REQUEST_BYTES_MAX {
            let size = REQUEST_BYTES_MAX / (1024 * 1024);
            let cause = format!("with {} the files to send are larger than {size} MiB", path.display());
            return Err(Problem::new(cause, "Send smaller files, or split the collection."));
        }
        Ok(Some(bytes))
    }
}

/// As the file's name has it.
fn media_of_file(name: &str) -> String {
    mime_guess::from_path(name).first_or_octet_stream().to_string()
}

/// The Content-Type that is written, in small letters.
fn media_type(fields: &Fields) -> String {
    let found = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    found.map(|(_, value)| value.to_ascii_lowercase()).unwrap_or_default()
}

/// Where none is written.
fn set_media_type(fields: &mut Fields, media: &str) {
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        fields.push(("Content-Type".to_owned(), media.to_owned()));
    }
}

/// A name within quotes, as browsers write it in forms.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// JSON without `//` and `/* */`, which Postman allows in its editor and does not send.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut in_string = false;
    while let Some(letter) = rest.chars().next() {
        let mut length = letter.len_utf8();
        match letter {
            '\\' if in_string => {
                length += rest.get(1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
            }
            '"' => in_string = !in_string,
            '/' if !in_string && rest.starts_with("//") => {
                rest = rest.find(['\n', '\r']).and_then(|end| rest.get(end..)).unwrap_or_default();
                continue;
            }
            '/' if !in_string && rest.starts_with("/*") => {
                let end = rest.get(2..).and_then(|rest| rest.find("*/"));
                rest = end.and_then(|end| rest.get(end + 4..)).unwrap_or_default();
                continue;
            }
            _ => {}
        }
        out.push_str(rest.get(..length).unwrap_or_default());
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}
