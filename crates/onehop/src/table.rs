//! Tables for a person: columns as wide as their widest cell.

/// A column's head, and where its cells stand.
pub(crate) enum Column {
    /// For words.
    Left(&'static str),
    /// For numbers.
    Right(&'static str),
}

impl Column {
    fn head(&self) -> &'static str {
        match self {
            Self::Left(head) | Self::Right(head) => head,
        }
    }
}

/// The table, an empty line before it; nothing where there are no rows.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heads = columns.iter().map(|column| column.head().to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&heads).chain(rows).collect();
    let width = |at: usize| {
        let cells = lines.iter().filter_map(|cells| cells.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::from("\n");
    for cells in lines {
        let padded = cells.iter().zip(columns).zip(&widths).map(|((cell, column), width)| match column {
            Column::Left(_) => format!("{cell:<width$}"),
            Column::Right(_) => format!("{cell:>width$}"),
        });
        let line: Vec<String> = padded.collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}
