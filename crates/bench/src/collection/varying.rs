//! What is made anew for each iteration: `{{$guid}}`, `{{$timestamp}}`, `{{$randomInt}}`.
//!
//! Owns their marks. A variable's value may be encoded on its way into a request (into a URL, a form, JSON), and
//! only afterwards it is known where it went. So each gets a mark first, of letters and digits only, which no encoding
//! changes, and the finished request is cut at the marks.

use std::time::{SystemTime, UNIX_EPOCH};

use onehop_load::plan::Request;

/// Letters of a mark. 26 to the power of 20: it stands nowhere by chance, and nobody can guess it.
const MARK_LETTERS: usize = 20;

/// Stands before each part that is made anew.
#[derive(Debug)]
pub(super) struct Mark {
    word: String,
    is_used: bool,
}

/// Parts of a request that are made anew for each iteration.
#[derive(Debug, Clone)]
pub(super) struct Varying {
    path: Template,
    fields: Vec<(String, Template)>,
    body: Option<Template>,
}

/// Bytes, and between them what is made anew.
#[derive(Debug, Clone)]
struct Template(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Dynamic(Dynamic),
}

/// What is made anew, as Postman names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dynamic {
    /// `$guid` and `$randomUUID`: a random UUID, version 4 (RFC 9562 section 5.4).
    Guid,
    /// `$timestamp`: seconds since 1970.
    Timestamp,
    /// `$randomInt`: from 0 to 1000.
    RandomInt,
}

impl Mark {
    /// What stands for a value until it is known where it goes.
    pub(super) fn put(&mut self, dynamic: Dynamic) -> String {
        self.is_used = true;
        format!("{}{}", self.word, dynamic.letter())
    }

    /// A text with values in place of its marks.
    pub(super) fn resolve(&self, text: String) -> String {
        self.template(text.as_bytes()).map_or(text, |template| template.text())
    }

    /// Takes the marks out of a request: it gets values, and what makes others where there were marks.
    pub(super) fn settle(&self, request: &mut Request) -> Option<Varying> {
        let path = self.template(request.url.path.as_bytes());
        let body = request.body.as_deref().and_then(|body| self.template(body));
        let fields: Vec<_> = request
            .fields
            .iter()
            .map(|(name, value)| (name, self.template(value.as_bytes()), value))
            .collect();
        if path.is_none() && body.is_none() && fields.iter().all(|(_, value, _)| value.is_none()) {
            return None;
        }
        let whole = |bytes: &[u8]| Template(vec![Piece::Bytes(bytes.to_vec())]);
        let varying = Varying {
            path: path.unwrap_or_else(|| whole(request.url.path.as_bytes())),
            fields: fields
                .into_iter()
                .map(|(name, made, value)| (name.clone(), made.unwrap_or_else(|| whole(value.as_bytes()))))
                .collect(),
            body: body.or_else(|| request.body.as_deref().map(whole)),
        };
        varying.renew(request);
        Some(varying)
    }

    /// Cuts bytes at the marks. `None` where there is none.
    fn template(&self, bytes: &[u8]) -> Option<Template> {
        if !self.is_used {
            return None;
        }
        let mut pieces = Vec::new();
        let mut rest = bytes;
        while let Some((before, dynamic, after)) = self.next_mark(rest) {
            pieces.extend([Piece::Bytes(before.to_vec()), Piece::Dynamic(dynamic)]);
            rest = after;
        }
        if pieces.is_empty() {
            return None;
        }
        pieces.push(Piece::Bytes(rest.to_vec()));
        Some(Template(pieces))
    }

    fn next_mark<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], Dynamic, &'a [u8])> {
        let mark = self.word.as_bytes();
        let mut from = 0;
        while let Some(found) = bytes.get(from..)?.windows(mark.len()).position(|window| window == mark) {
            let at = from + found;
            let after = bytes.get(at + mark.len()..)?;
            if let Some((dynamic, rest)) =
                after.split_first().and_then(|(l, rest)| Some((Dynamic::at(*l)?, rest)))
            {
                return Some((bytes.get(..at)?, dynamic, rest));
            }
            from = at + mark.len();
        }
        None
    }
}

impl Default for Mark {
    fn default() -> Self {
        Mark { word: (0..MARK_LETTERS).map(|_| fastrand::lowercase()).collect(), is_used: false }
    }
}

impl Varying {
    /// Gives a request new values.
    pub(super) fn renew(&self, request: &mut Request) {
        request.url.path = self.path.text();
        request.fields = self.fields.iter().map(|(name, value)| (name.clone(), value.text())).collect();
        request.body = self.body.as_ref().map(Template::bytes);
    }
}

impl Template {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Bytes(bytes) => out.extend_from_slice(bytes),
                Piece::Dynamic(dynamic) => out.extend_from_slice(dynamic.make().as_bytes()),
            }
        }
        out
    }

    /// It was cut from text at marks that are text: nothing is lost.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

impl Dynamic {
    pub(super) fn of(name: &str) -> Option<Dynamic> {
        match name {
            "$guid" | "$randomUUID" => Some(Dynamic::Guid),
            "$timestamp" => Some(Dynamic::Timestamp),
            "$randomInt" => Some(Dynamic::RandomInt),
            _ => None,
        }
    }

    fn letter(self) -> char {
        match self {
            Dynamic::Guid => '0',
            Dynamic::Timestamp => '1',
            Dynamic::RandomInt => '2',
        }
    }

    fn at(letter: u8) -> Option<Dynamic> {
        match letter {
            b'0' => Some(Dynamic::Guid),
            b'1' => Some(Dynamic::Timestamp),
            b'2' => Some(Dynamic::RandomInt),
            _ => None,
        }
    }

    fn make(self) -> String {
        match self {
            Dynamic::Guid => {
                let random = fastrand::u128(..);
                // RFC 9562 section 5.4: version 4, variant 10.
                let marked = (random & !(0xF << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
                let text = format!("{marked:032x}");
                let parts: Vec<&str> = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)]
                    .into_iter()
                    .filter_map(|(from, to)| text.get(from..to))
                    .collect();
                parts.join("-")
            }
            Dynamic::Timestamp => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                since.as_secs().to_string()
            }
            Dynamic::RandomInt => fastrand::u32(0..=1000).to_string(),
        }
    }
}
