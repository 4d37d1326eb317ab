//! Packs that are large, broken off, or do not fit.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use onehop_testkit::Program;
use rustix::process::Signal;

use super::{Bench, SITE, shop};

#[test]
fn a_file_of_two_gibibytes_is_packed_in_little_memory() {
    let bench = Bench::with(&[("Onehopfile", SITE), ("dist/index.html", "hello")]);
    File::create(bench.project.join("dist/film.mp4")).expect("a file").set_len(2 << 30).expect("sparse");
    let begun = Instant::now();
    let out = bench.out.join("shop");
    let program = ["pack", "-o", out.to_str().expect("UTF-8"), "--target", &bench.stub];
    let mut packing = Program::new(program).inside(bench.project.path()).start();
    let status = format!("/proc/{}/status", packing.pid());
    let mut peak = 0;
    let ended = loop {
        if let Some(line) = fs::read_to_string(&status).ok().as_deref().and_then(high_water) {
            peak = peak.max(line);
        }
        if let Some(ended) = packing.has_ended() {
            break ended;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(ended.success(), "{ended}: {}", packing.stderr());
    println!("{:?}, {peak} KiB", begun.elapsed());
    assert!(peak > 0 && peak < 200 * 1024, "{peak} KiB");
    assert_eq!(fs::metadata(&out).expect("there").len() >> 30, 2);
    let film = bench.inspect(&["--files"]).stdout;
    assert!(film.contains("film.mp4") && film.contains("2.0 GiB"), "{film}");
}

/// `VmHWM` in KiB.
fn high_water(status: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
}

#[test]
fn fifty_thousand_files_are_packed() {
    let bench = Bench::with(&[("Onehopfile", SITE), ("dist/index.html", "hello")]);
    for folder in 0..500 {
        for file in 0..100 {
            bench.project.write(&format!("dist/{folder}/{file}.txt"), format!("{folder} {file}\n"));
        }
    }
    let begun = Instant::now();
    let out = bench.out.join("shop");
    let program = ["pack", "-o", out.to_str().expect("UTF-8"), "--target", &bench.stub];
    let mut packing = Program::new(program).inside(bench.project.path()).start();
    let ended = onehop_testkit::wait_at_most(Duration::from_secs(300), "the pack", || packing.has_ended());
    assert!(ended.success());
    println!("{:?}", begun.elapsed());
    assert_eq!(bench.index()["trees"][0]["files"].as_array().map(Vec::len), Some(50_001));
}

#[test]
fn a_pack_that_is_broken_off_leaves_nothing_behind() {
    let bench = Bench::with(&[("Onehopfile", SITE), ("dist/index.html", "hello")]);
    File::create(bench.project.join("dist/film.mp4")).expect("a file").set_len(2 << 30).expect("sparse");
    let out = bench.out.join("shop");
    let program = ["pack", "-o", out.to_str().expect("UTF-8"), "--target", &bench.stub];
    let mut packing = Program::new(program).inside(bench.project.path()).start();
    let names = || {
        let entries = fs::read_dir(bench.out.path()).expect("there").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<String>>()
    };
    let large = || {
        let name = names().into_iter().find(|name| name.starts_with(".onehop-pack-"))?;
        fs::metadata(bench.out.join(&name)).ok().filter(|found| found.len() > 1 << 20)
    };
    onehop_testkit::wait_for("the first bytes", large);
    packing.signal(Signal::INT);
    let ended = packing.wait().expect("it ends");
    assert_eq!(ended.code(), Some(130));
    assert_eq!(names(), ["stub"]);
}

#[test]
fn a_full_disk_is_reported_with_the_file_that_cannot_be_written() {
    let tried = std::process::Command::new("unshare").args(["--mount", "true"]).status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may make no namespaces (unshare --mount)");
        return;
    }
    let bench = shop();
    let small = bench.out.join("small");
    fs::create_dir(&small).expect("made");
    // The program itself does not fit, then only what follows it.
    for (size, target) in [("64k", None), ("64k", Some(&bench.stub)), ("4k", Some(&bench.stub))] {
        let mount = format!("mount -t tmpfs -o size={size} tmpfs {} && exec \"$@\"", small.display());
        let output = small.join("shop");
        let mut words = vec!["pack", "-o", output.to_str().expect("UTF-8")];
        words.extend(target.into_iter().flat_map(|target| ["--target", target]));
        if target.is_some() && size == "64k" {
            let noise: Vec<u8> =
                (0..100_000_u32).flat_map(|number| number.wrapping_mul(0x9E37_79B9).to_be_bytes()).collect();
            fs::write(bench.project.join("noise.bin"), noise).expect("written");
        }
        let done = Program::new(words)
            .inside(bench.project.path())
            .through(&["unshare", "--mount", "sh", "-c", &mount, "sh"])
            .finish();
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        let expected = "error: cannot write [out]/small/shop: No space left on device (os error 28); make room, or name another place \
                        with -o FILE\n";
        assert_eq!(bench.reported(&done.stderr), expected);
    }
}
