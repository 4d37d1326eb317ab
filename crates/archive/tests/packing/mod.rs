//! Packs for tests: what stands for the program in front has only the place that packing fills in.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::OnceLock;

use onehop_archive::{Index, Pack, Writer};

/// Begins a pack in a new file.
pub(crate) fn begin(path: &Path) -> Writer {
    let out = OpenOptions::new().read(true).write(true).create_new(true).open(path).expect("a file");
    Writer::begin(program(), out).expect("a program")
}

/// Ends it and opens it.
pub(crate) fn finish(path: &Path, writer: Writer, mut index: Index) -> (Pack, Index) {
    index.made_by = "onehop test".to_owned();
    index.name = "myapp".to_owned();
    index.configuration.path = "Onehopfile".to_owned();
    writer.finish(index).expect("sound");
    Pack::open(path).expect("a pack")
}

/// The mark is taken from this test's own program, which has it like every onehop: nothing may spell it out.
fn program() -> &'static [u8] {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let own = fs::read(std::env::current_exe().expect("there")).expect("readable");
        // A part of it, which does not make a second one.
        let part = b"\r\n\x1a\npack-slot:";
        let found = memchr::memmem::find_iter(&own, part);
        let mut marks = found.filter_map(|at| own.get(at.checked_sub(7)?..at + 25));
        let mark = marks.find(|mark| mark.starts_with(&[0x89]) && mark.ends_with(&[0x0b, 0x0e]));
        let mut program = vec![7; 5000];
        program.extend_from_slice(mark.expect("a slot"));
        program.resize(program.len() + 72, 0);
        program
    })
}
