//! The commands of `scripts` in a package.json, as far as they are plain words.
//!
//! Only what can be started without a shell is taken apart; everything else is left to one.

/// Commands joined by `&&`, each as its words; nothing where a shell is needed to know what they mean.
pub(super) fn commands(text: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.trim().chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => double_quoted(&mut characters, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(characters.next()?),
            '&' if characters.peek() == Some(&'&') => {
                characters.next();
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            '#' if word.is_none() => return None,
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '`' | '$' | '*' | '?' | '[' | '{' | '}' | '~'
            | '\n' | '\r' => {
                return None;
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    commands.push(words);
    commands.iter().all(|words| !words.is_empty()).then_some(commands)
}

/// The rest of a text in double quotes; nothing where the shell would put something in.
fn double_quoted(characters: &mut impl Iterator<Item = char>, word: &mut String) -> Option<()> {
    loop {
        match characters.next()? {
            '"' => return Some(()),
            '$' | '`' => return None,
            '\\' => match characters.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}

/// `NAME=value` before the program, and the rest.
pub(super) fn assignments(words: Vec<String>) -> (Vec<(String, String)>, Vec<String>) {
    let mut environment = Vec::new();
    let mut rest = words.into_iter().peekable();
    while let Some((name, value)) = rest.peek().and_then(|word| word.split_once('=')) {
        if !is_name(name) {
            break;
        }
        environment.push((name.to_owned(), value.to_owned()));
        rest.next();
    }
    (environment, rest.collect())
}

/// Whether a word can be the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_commands_are_taken_apart_and_others_are_left_to_a_shell() {
        for (text, expected) in [
            ("node server.js", Some("node|server.js")),
            ("  node   --inspect=0 'a b.js' \"c \\\"d\" ", Some("node|--inspect=0|a b.js|c \"d")),
            ("npm run build && node dist/main", Some("npm|run|build && node|dist/main")),
            ("NODE_ENV=production node x\\ y.js", Some("NODE_ENV=production|node|x y.js")),
            ("next start -p $PORT", None),
            ("node \"$MAIN\"", None),
            ("node a.js & node b.js", None),
            ("node a.js | tee log", None),
            ("node 'a", None),
            ("node a \\", None),
            ("&& node a.js", None),
            ("", None),
        ] {
            let shown = commands(text).map(|commands| {
                commands.iter().map(|words| words.join("|")).collect::<Vec<_>>().join(" && ")
            });
            assert_eq!(shown.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn variables_before_a_program_are_reported_from_its_words() {
        let words = ["A=1", "B=", "node", "C=3"].map(str::to_owned).to_vec();
        let (environment, rest) = assignments(words);
        assert_eq!(environment, [("A".to_owned(), "1".to_owned()), ("B".to_owned(), String::new())]);
        assert_eq!(rest, ["node", "C=3"]);
    }
}
