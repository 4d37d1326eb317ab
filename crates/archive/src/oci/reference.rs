//! Names of images: `myapp`, `registry.example/team/myapp:1.2`.
//!
//! The grammar of the distribution project (reference/reference.go): a registry, names, a tag. No digest: an image
//! that is made gets its own.

/// Bytes of a name without its tag, as registries have it.
const NAME_BYTES_MAX: usize = 255;

/// Bytes of a tag.
const TAG_BYTES_MAX: usize = 128;

/// The tag where none is named.
const LATEST: &str = "latest";

/// What an image is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    name: String,
    tag: String,
}

impl Reference {
    /// Reads a name, with a tag or without.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, tag) = match text.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, tag),
            _ => (text, LATEST),
        };
        let wrong = |why: &str| Err(format!("{text:?} is no name of an image: {why}"));
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return wrong("write for example myapp:1.2 or registry.example/team/myapp:1.2");
        }
        let is_tag = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        if tag.is_empty()
            || tag.len() > TAG_BYTES_MAX
            || tag.starts_with(['.', '-'])
            || !tag.bytes().all(is_tag)
        {
            return wrong("a tag has letters, digits, `_`, `.` and `-`");
        }
        let parts: Vec<&str> = name.split('/').collect();
        let begin = usize::from(parts.len() > 1 && parts.first().is_some_and(|first| is_registry(first)));
        if !parts.iter().skip(begin).all(|part| is_component(part)) {
            return wrong("its parts have small letters, digits, and `.`, `_` or `-` between them");
        }
        Ok(Self { name: name.to_owned(), tag: tag.to_owned() })
    }

    /// A name made of that of a program, whatever stands in it.
    pub fn of_program(program: &str) -> Self {
        let lower = program.to_ascii_lowercase();
        let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
        let parts: Vec<&str> =
            lower.split(|character| !is_plain(character)).filter(|part| !part.is_empty()).collect();
        let name = parts.join("-");
        Self::parse(&name).unwrap_or_else(|_| Self { name: "app".to_owned(), tag: LATEST.to_owned() })
    }

    /// As people write it.
    pub fn short(&self) -> String {
        format!("{}:{}", self.name, self.tag)
    }

    /// With the registry that Docker means where none is named.
    pub(super) fn full(&self) -> String {
        match self.name.split_once('/') {
            Some((first, _)) if is_registry(first) => self.short(),
            Some(_) => format!("docker.io/{}", self.short()),
            None => format!("docker.io/library/{}", self.short()),
        }
    }
}

/// A host, which has a dot or a port, or is this machine.
fn is_registry(part: &str) -> bool {
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
    (part.contains(['.', ':']) || part == "localhost") && part.bytes().all(is_host)
}

fn is_component(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_allowed = |byte: u8| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-');
    let ends = [part.bytes().next(), part.bytes().next_back()];
    ends.into_iter().all(|end| end.is_some_and(is_plain))
        && part.bytes().all(is_allowed)
        && !part.contains("..")
        && !part.contains("___")
        && !part.contains("._")
        && !part.contains("_.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_registries_do() {
        for (text, short, full) in [
            ("myapp", "myapp:latest", "docker.io/library/myapp:latest"),
            ("myapp:1.2", "myapp:1.2", "docker.io/library/myapp:1.2"),
            ("team/my-app", "team/my-app:latest", "docker.io/team/my-app:latest"),
            ("localhost:5000/a/b:v1", "localhost:5000/a/b:v1", "localhost:5000/a/b:v1"),
            ("ghcr.io/team/app", "ghcr.io/team/app:latest", "ghcr.io/team/app:latest"),
        ] {
            let reference = Reference::parse(text).expect(text);
            assert_eq!((reference.short().as_str(), reference.full().as_str()), (short, full));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in
            ["", ":1", "MyApp", "a:", "a:b c", "a//b", "-a", "a..b", "a:-x", "a@sha256:00", "ä", "a/../b"]
        {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_program_has_a_name_for_its_image() {
        for (program, name) in [("MyApp", "myapp"), ("my_app.bin", "my-app-bin"), ("…", "app"), ("", "app")]
        {
            assert_eq!(Reference::of_program(program).short(), format!("{name}:latest"), "{program}");
        }
    }
}
