//! Programs that were made portable run where their libraries lie, and nowhere else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;

use super::*;
use crate::index::Runtime;

/// Prints what its library says, and which files it has in memory.
const PROGRAM: &str = r#"
#include <stdio.h>
const char *greeting(void);
int main(void) {
    char line[4096];
    puts(greeting());
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) fputs(line, stdout);
    return 0;
}
"#;

fn compile(folder: &Path, source: &str, name: &str, options: &[&str]) -> PathBuf {
    let (file, out) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&file, source).expect("written");
    let done = Command::new("cc").current_dir(folder).arg(&file).args(["-o", name]).args(options).output();
    let done = done.expect("a C compiler, which Rust's linker is as well");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    out
}

/// A program with libraries: one names another, in a folder that only it knows.
fn program(folder: &Path, options: &[&str]) -> PathBuf {
    compile(folder, "const char *inner(void) { return \"hello\"; }", "libinner.so", &["-shared", "-fPIC"]);
    let own = format!("-Wl,-rpath,{}", folder.display());
    let outer = "const char *inner(void); const char *greeting(void) { return inner(); }";
    compile(folder, outer, "libouter.so", &["-shared", "-fPIC", "-L.", "-l:libinner.so", &own]);
    let origin = ["-L.", "-l:libouter.so", "-Wl,-rpath,$ORIGIN", "-Wl,--allow-shlib-undefined"];
    compile(folder, PROGRAM, "greet", &[&origin, options].concat())
}

/// What `onehop pack` and a pack's start do between them.
fn unpack(portable: &Portable, name: &str, folder: &Path) -> PathBuf {
    let runtime = Runtime {
        name: name.to_owned(),
        version: String::new(),
        files: Vec::new(),
        paths: portable.paths.clone(),
    };
    fs::create_dir_all(folder.join(PROGRAMS)).expect("made");
    fs::create_dir_all(folder.join(LIBRARIES)).expect("made");
    let mut bytes = portable.program.clone();
    let file = format!("{PROGRAMS}/{name}");
    for (offset, path) in runtime.absolute_paths(&file, folder).expect("short enough") {
        let offset = usize::try_from(offset).expect("small");
        bytes[offset..offset + path.len()].copy_from_slice(&path);
    }
    let program = folder.join(file);
    fs::write(&program, bytes).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
    for library in &portable.libraries {
        let path = folder.join(LIBRARIES).join(&library.name);
        fs::write(&path, &library.bytes).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    }
    program
}

/// Runs a program that was just written. A process that another test forks meanwhile holds the file open for writing until
/// it executes its own.
fn run(program: &Path) -> std::process::Output {
    loop {
        match Command::new(program).env_clear().output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            done => return done.expect("its loader is there"),
        }
    }
}

#[test]
fn a_portable_program_uses_its_own_loader_and_libraries_and_nothing_of_the_machine() {
    for options in [&["-pie", "-fPIE"][..], &["-no-pie", "-fno-pie"], &["-Wl,-z,nospare-dynamic-tags"]] {
        // Not every linker knows the last one; then it is a program as others.
        let built = tempfile::tempdir().expect("a folder");
        let made = program(built.path(), options);
        let places = Places::of_this_machine();
        let portable = make_portable(&made, "greet", &places).expect("portable");
        let again = make_portable(&made, "greet", &places).expect("portable");
        assert!(portable.program == again.program, "equal files make equal results");
        let names: Vec<&str> = portable.libraries.iter().map(|library| library.name.as_str()).collect();
        assert!(
            names.is_sorted() && names.contains(&"libinner.so") && names.contains(&"libc.so.6"),
            "{names:?}"
        );
        drop(built);
        let folder = tempfile::tempdir().expect("a folder");
        let placed = folder.path().canonicalize().expect("there").join("a b");
        let program = unpack(&portable, "greet", &placed);
        let done = run(&program);
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(text.starts_with("hello\n"), "{text}{}", String::from_utf8_lossy(&done.stderr));
        let foreign = |line: &&str| line.contains(" /") && !line.contains(&*placed.to_string_lossy());
        assert_eq!(text.lines().find(foreign), None, "of {options:?}");
    }
}

#[test]
fn a_program_of_musl_takes_its_loader_along_as_its_c_library() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }";
    let file = folder.path().join("greet.c");
    std::fs::write(&file, source).expect("written");
    let made = folder.path().join("greet");
    let done = Command::new("musl-gcc").arg(&file).arg("-o").arg(&made).output();
    if !done.is_ok_and(|done| done.status.success()) {
        // Machines without musl-tools; that glibc's programs run is shown above.
        return;
    }
    let portable = make_portable(&made, "greet", &Places::of_this_machine()).expect("portable");
    let names: Vec<&str> = portable.libraries.iter().map(|library| library.name.as_str()).collect();
    assert!(matches!(names[..], [name] if name.starts_with("ld-musl-")), "{names:?}");
    let placed = folder.path().join("placed");
    let done = run(&unpack(&portable, "greet", &placed));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "hello\n");
}

#[test]
fn a_static_program_is_taken_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = compile(folder.path(), "int main(void) { return 0; }", "static", &["-static"]);
    let portable = make_portable(&made, "static", &Places::of_this_machine()).expect("portable");
    assert!(portable.libraries.is_empty() && portable.paths.is_empty());
    assert!(portable.program == fs::read(&made).expect("there"));
}

#[test]
fn a_library_that_is_missing_is_named_with_who_needs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = program(folder.path(), &[]);
    fs::remove_file(folder.path().join("libinner.so")).expect("there");
    let error = make_portable(&made, "greet", &Places::of_this_machine()).expect_err("one is missing");
    let text = error.to_string();
    assert!(text.contains("libouter.so needs the library libinner.so, which is not found"), "{text}");
}

#[test]
fn what_is_no_program_says_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("node");
    let mut foreign = fs::read("/proc/self/exe").expect("this test");
    foreign[18] = 3;
    for (content, expected) in [
        (b"#!/bin/sh\nexec node".to_vec(), "is a script"),
        (b"text".to_vec(), "no ELF file"),
        (b"\x7fELF\x01\x01\x01".to_vec(), "no program of 64 bits"),
        (b"\x7fELF\x02\x01\x01".to_vec(), "is cut off"),
        (foreign, "runs neither on x86-64 nor on 64-bit ARM"),
    ] {
        fs::write(&path, content).expect("written");
        let error = make_portable(&path, "node", &Places::of_this_machine()).expect_err("no program");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn a_file_that_was_changed_anywhere_is_an_error_or_a_program(
        changes in prop::collection::vec((0_usize..4096, any::<u8>()), 1..8),
        cut in 0_usize..20_000,
    ) {
        // The head and the dynamic section are what is read; /bin/true has both near its beginning and end.
        let mut bytes = fs::read("/bin/true").expect("there");
        let dynamic = Elf::parse(&bytes).expect("a program").segment(elf::PT_DYNAMIC).map_or(0, |found| found.offset);
        for (at, byte) in changes {
            let base = if at % 2 == 0 { 0 } else { usize::try_from(dynamic).expect("small") };
            if let Some(place) = bytes.get_mut(base + at / 4) {
                *place = byte;
            }
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        if let Ok(elf) = Elf::parse(&bytes) {
            let _ = (elf.target(), elf.interpreter(), elf.needed(), elf.folders());
            let _ = portable::with_rooms(&elf);
        }
        let _ = portable::forget_folders(&mut bytes);
    }
}
