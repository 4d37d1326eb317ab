//! What is said of TLS: handshakes, and what they agreed on. Nothing is said of a load over http.

use onehop_load::tls::Handshakes;

use super::{Cell, Column, Table};
use crate::figures;

/// Ways of encryption that are listed; of more the first.
const PARAMETERS_MAX: usize = 4;

/// A row for each, where it had handshakes.
pub(super) fn table<'a>(named: impl Iterator<Item = (String, &'a Handshakes)>) -> Table {
    let caption = "Handshakes of TLS, those of the warm-up among them";
    let mut table = Table::of_figures(caption, "TLS", &["Full", "Resumed"]);
    table.columns.push(Column { name: "Version, cipher suite, key exchange".to_owned(), is_figure: false });
    for (name, handshakes) in named.filter(|(_, handshakes)| handshakes.sum() > 0) {
        table.row([
            Cell::from(name),
            Cell::from(figures::count(handshakes.full)),
            Cell::from(figures::count(handshakes.resumed)),
            Cell::from(agreed_on(handshakes)),
        ]);
    }
    table
}

/// The same of several runs in a sentence; `None` where there was no handshake.
pub(crate) fn sentence<'a>(all: impl Iterator<Item = &'a Handshakes>) -> Option<String> {
    let mut together = Handshakes::default();
    all.for_each(|handshakes| together.merge(handshakes));
    (together.sum() > 0).then(|| {
        format!(
            "{}; {}, {} resumed.",
            agreed_on(&together),
            figures::counted(together.full, "full handshake"),
            figures::count(together.resumed)
        )
    })
}

fn agreed_on(handshakes: &Handshakes) -> String {
    let all: Vec<String> =
        handshakes.parameters.keys().take(PARAMETERS_MAX).map(ToString::to_string).collect();
    all.join("; ")
}
