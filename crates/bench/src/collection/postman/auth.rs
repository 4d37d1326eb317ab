//! What Postman's authorization adds to a request.

use serde_json::Value;

use super::Reader;
use crate::basic;
use crate::collection::problem::Problem;
use crate::collection::variables::text_of;

impl Reader<'_> {
    /// Adds the field; gives the parameter of the URL where it belongs there.
    pub(super) fn authorize(
        &mut self,
        auth: &Value,
        fields: &mut Vec<(String, String)>,
        request: &str,
    ) -> Result<Option<(String, String)>, Problem> {
        let kind = auth.get("type").map(text_of).unwrap_or_default();
        let settings = auth.get(&kind).unwrap_or(&Value::Null);
        let setting = |name: &str| setting_of(settings, name);
        match kind.as_str() {
            "noauth" | "inherit" | "" => {}
            "basic" => {
                // Base64 hides what is made anew for each iteration: it is made once.
                let name = self.variables.fill_once(&setting("username"))?;
                let password = self.variables.fill_once(&setting("password"))?;
                let (field, value) = basic::authorization(&format!("{name}:{password}"));
                set(fields, &field, value);
            }
            "bearer" => {
                let token = self.variables.fill(&setting("token"))?;
                if !token.is_empty() {
                    set(fields, "Authorization", format!("Bearer {token}"));
                }
            }
            "apikey" => {
                let key = self.variables.fill(&setting("key"))?;
                let value = self.variables.fill(&setting("value"))?;
                if setting("in") == "query" {
                    return Ok(Some((key, value)).filter(|(key, value)| !key.is_empty() || !value.is_empty()));
                }
                if !key.is_empty() {
                    set(fields, &key, value);
                }
            }
            other => self
                .notes
                .push(&format!("`{request}`: authorization `{other}` is not done, it is asked without")),
        }
        Ok(None)
    }
}

/// v2.1 has a list of `{key, value}`; older files have an object.
fn setting_of(settings: &Value, name: &str) -> String {
    let value = match settings {
        Value::Array(list) => {
            let is_it = |entry: &&Value| entry.get("key").and_then(Value::as_str) == Some(name);
            list.iter().find(is_it).and_then(|entry| entry.get("value"))
        }
        other => other.get(name),
    };
    value.map(text_of).unwrap_or_default()
}

/// In place of others of its name.
fn set(fields: &mut Vec<(String, String)>, name: &str, value: String) {
    fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    fields.push((name.to_owned(), value));
}
