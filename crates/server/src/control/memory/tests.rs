//! The sum of `memory`, and where its default comes from.

use onehop_config::{FileKind, FileSource, load};

use super::*;

const MIB: u64 = 1024 * 1024;

fn checked(text: &str) -> Checked {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("dist")).unwrap();
    std::fs::write(folder.path().join("server.mjs"), "").unwrap();
    let file = folder.path().join("Onehopfile");
    std::fs::write(&file, text).unwrap();
    load(&file, FileKind::Onehopfile, &FileSource).unwrap_or_else(|problems| panic!("{problems:?}")).checked
}

fn with(memory: &str, site: &str) -> Checked {
    checked(&format!("{{\n\t{memory}\n}}\nhttp://localhost:8080 {{\n\t{site}\n}}\n"))
}

/// On two cores.
fn share(checked: &Checked, descriptors: usize, available: Option<u64>) -> Result<Share, String> {
    super::share(checked, 2, descriptors, available)
}

const FILES: &str = "spa ./dist";
const BUSY: &str =
    "rate_limit 10r/s keys 1000000\n\tlimit in_flight 10 queue 20000\n\tlog\n\tapp ./server.mjs";

#[test]
fn without_a_word_and_without_a_control_group_descriptors_bound_connections() {
    let share = share(&with("admin off", FILES), 20_000, None).unwrap();
    assert_eq!(
        share,
        Share { files_bytes: 512 * MIB, connections: 20_000, windows: Windows::default(), coders_bytes: 0 }
    );
}

#[test]
fn files_and_connections_share_what_is_written() {
    let of = |memory: &str, descriptors| share(&with(memory, FILES), descriptors, None).unwrap();
    let few = of("memory 1GiB", 1_000);
    assert_eq!(few.connections, 1_000);
    let all = few.files_bytes + 1_000 * CONNECTION_BYTES + PROCESS_BYTES;
    assert_eq!(all, 1024 * MIB, "files have what connections leave");
    let many = of("memory 1GiB", 1_000_000);
    assert!(many.files_bytes >= (512 - 8) * MIB, "{many:?}");
    assert!(many.files_bytes + many.connections as u64 * CONNECTION_BYTES <= 1024 * MIB, "{many:?}");
    let written = of("memory 1GiB files 960MiB", 1_000_000);
    assert_eq!(written.files_bytes, 960 * MIB);
    assert_eq!(written.connections as u64, (64 * MIB - PROCESS_BYTES) / CONNECTION_BYTES);
}

#[test]
fn queues_keys_and_logs_are_in_the_sum() {
    let plain = share(&with("memory 1GiB files 512MiB", FILES), 1_000_000, None).unwrap();
    let busy = share(&with("memory 1GiB files 512MiB", BUSY), 1_000_000, None).unwrap();
    assert!(busy.connections < plain.connections - 2_000, "{plain:?} {busy:?}");
}

#[test]
fn a_sum_that_does_not_fit_is_shown_line_by_line() {
    let mut shown = String::new();
    for (memory, site) in [
        ("memory 1GiB files 1020MiB", FILES),
        ("memory 4MiB", FILES),
        ("memory 64MiB files 16MiB", BUSY),
        ("memory 64MiB", BUSY),
    ] {
        let check = |checked: &Checked| share(checked, usize::MAX, None).map(drop);
        let error = check(&with(memory, site)).unwrap_err();
        let _ = write!(shown, "{memory}\n{error}\n\n");
        let enough = error.rsplit_once("raise `memory` to ").unwrap().1.split_once(' ').unwrap().0;
        let files =
            memory.split_once(" files ").map_or(String::new(), |(_, files)| format!(" files {files}"));
        let raised = format!("memory {enough}{files}");
        assert_eq!(check(&with(&raised, site)), Ok(()), "{raised} is told to be enough");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_control_group_stands_for_what_is_not_written_and_is_never_an_error() {
    let of = |site: &str, group| share(&with("admin off", site), 100_000, Some(group)).unwrap();
    let small = of(FILES, 256 * MIB);
    assert!(small.files_bytes + small.connections as u64 * CONNECTION_BYTES <= 192 * MIB, "{small:?}");
    assert!(small.connections > 1_000, "{small:?}");
    let beside = of(BUSY, 256 * MIB);
    assert!(beside.files_bytes + beside.connections as u64 * CONNECTION_BYTES <= 128 * MIB, "{beside:?}");
    assert_eq!(of(FILES, MIB).connections, CONNECTIONS_WORTHWHILE);
    let large = of(FILES, 64 << 30);
    assert_eq!(
        large,
        Share { files_bytes: 512 * MIB, connections: 100_000, windows: Windows::default(), coders_bytes: 0 }
    );
    // What is written counts, and not the group.
    let written = share(&with("memory 1GiB", FILES), 1_000, Some(MIB)).unwrap();
    assert_eq!(written.connections, 1_000);
}

#[test]
fn compressors_of_bodies_on_their_way_are_in_the_sum_and_give_way_to_connections() {
    const ENCODED: &str = "encode zstd gzip\n\treverse_proxy 127.0.0.1:9";
    for (memory, site, expected) in [
        ("memory 48MiB files 16MiB", ENCODED, 3 * MIB),
        ("memory 8GiB", ENCODED, COMPRESSORS_BYTES_MAX),
        ("admin off", ENCODED, COMPRESSORS_BYTES_MAX),
        // Room for 64 connections and a little more: bodies are sent as they are.
        ("memory 26MiB files 16MiB", ENCODED, 0),
        ("memory 8GiB", "reverse_proxy 127.0.0.1:9", 0),
        ("memory 8GiB", "root * .\n\tencode gzip\n\tfile_server", 0),
    ] {
        let share = share(&with(memory, site), 1_000, None).unwrap();
        assert_eq!(share.coders_bytes, expected, "{memory} {site}");
        assert!(share.connections >= CONNECTIONS_WORTHWHILE, "{memory}: {share:?}");
    }
    let of = |site| share(&with("memory 1GiB", site), usize::MAX, None).unwrap();
    let (with_encode, without) = (of(ENCODED), of("reverse_proxy 127.0.0.1:9"));
    let all =
        |share: Share| share.files_bytes + share.connections as u64 * CONNECTION_BYTES + share.coders_bytes;
    assert_eq!(all(with_encode), all(without), "what compressors get, the others do not");
    assert_eq!(share(&with("admin off", ENCODED), 1_000, Some(64 * MIB)).unwrap().coders_bytes, 2 * MIB);
}

#[test]
fn the_lowest_limit_up_the_tree_counts() {
    let folder = tempfile::tempdir().unwrap();
    let limit = |group: &str, text: &str| {
        let group = folder.path().join(group);
        std::fs::create_dir_all(&group).unwrap();
        std::fs::write(group.join("memory.max"), text).unwrap();
    };
    limit("system.slice", "1073741824\n");
    limit("system.slice/onehop.service", "max\n");
    limit("user.slice/deep/deeper", "2097152\n");
    limit("user.slice", "4194304\n");
    let of = |groups: &str| group_limit_below(groups, folder.path());
    for (groups, expected) in [
        ("0::/system.slice/onehop.service\n", Some(1 << 30)),
        ("4:memory:/elsewhere\n0::/user.slice/deep/deeper\n", Some(2 << 20)),
        ("0::/user.slice/other\n", Some(4 << 20)),
        ("0::/\n", None),
        ("0::/../../host\n", None),
        ("4:memory:/system.slice\n", None),
        ("", None),
    ] {
        assert_eq!(of(groups), expected, "{groups}");
    }
    limit("", "8388608\n");
    assert_eq!(of("0::/\n"), Some(8 << 20), "the root of a container");
}

#[test]
fn the_limit_of_a_version_1_group_counts_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let limit = |group: &str, text: &str| {
        let group = folder.path().join("memory").join(group);
        std::fs::create_dir_all(&group).unwrap();
        std::fs::write(group.join("memory.limit_in_bytes"), text).unwrap();
    };
    limit("", "9223372036854771712\n");
    limit("site", "100663296\n");
    limit("site/deep", "9223372036854771712\n");
    let of = |groups: &str| group_limit_below(groups, folder.path());
    for (groups, expected) in [
        ("4:memory:/site\n0::/\n", Some(96 << 20)),
        ("3:cpuset:/site\n4:cpu,memory:/site/deep\n", Some(96 << 20)),
        ("4:memory:/\n", None),
        ("3:cpuset:/site\n", None),
        ("4:memory\nmemory", None),
        // In a container whose group is named as the host sees it.
        ("4:memory:/elsewhere/not/mounted\n", None),
    ] {
        assert_eq!(of(groups), expected, "{groups}");
    }
    limit("", "67108864\n");
    assert_eq!(of("4:memory:/elsewhere/not/mounted\n"), Some(64 << 20));
}

#[test]
fn the_memory_of_the_machine_is_read_as_the_kernel_writes_it() {
    assert_eq!(machine_memory("MemTotal:       1017716 kB\nMemFree:  1 kB\n"), Some(1_017_716 * 1024));
    assert_eq!(machine_memory("MemFree:  1 kB\n"), None);
    assert_eq!(machine_memory("MemTotal: many\n"), None);
    assert!(available().is_some_and(|bytes| bytes > MIB));
}

#[test]
fn bodies_get_windows_that_fit_beside_everything_else() {
    let of = |memory: &str| {
        let share = share(&with(memory, "app ./server.mjs"), 100_000, None).unwrap();
        let bodies = held(2, share.windows.connection);
        let connections = share.connections as u64 * CONNECTION_BYTES;
        (share, bodies + connections + share.files_bytes)
    };
    for memory in [47, 48, 64, 128, 1024, 8192] {
        let (share, sum) = of(&format!("memory {memory}MiB"));
        assert!(sum <= memory * MIB, "{memory}: {share:?}");
        assert!(
            (CONNECTION_WINDOW_BYTES_MIN..=CONNECTION_WINDOW_BYTES).contains(&share.windows.connection),
            "{share:?}"
        );
        assert!((STREAM_WINDOW_BYTES_MIN..=STREAM_WINDOW_BYTES).contains(&share.windows.stream), "{share:?}");
    }
    assert_eq!(of("memory 8GiB").0.windows, Windows::default());
    assert!(of("memory 64MiB").0.windows.connection < 8 << 20);
}
