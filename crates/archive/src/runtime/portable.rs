//! Changes a program so that its loader and its libraries may lie in any folder.
//!
//! The kernel reads the loader's path (`PT_INTERP`) from the file, ld.so the folder of libraries (`DT_RPATH`) from
//! memory. Both get room in a page behind everything else that the file holds, which is loaded as one more segment; the
//! absolute paths are written there when it is unpacked. `$ORIGIN` would do for the second only where /proc is: glibc
//! looks there for its value. Nothing that was in the file moves.
//!
//! `DT_RPATH` and not `DT_RUNPATH` nor `LD_LIBRARY_PATH`: it also counts for the libraries' own libraries, and
//! processes that the program starts do not inherit it.

use super::elf::{
    DT_DEBUG, DT_NULL, DT_RPATH, DT_RUNPATH, DT_STRTAB, ENTRY_BYTES, Elf, Entry, PF_R, PT_DYNAMIC,
    PT_GNU_PROPERTY, PT_GNU_RELRO, PT_INTERP, PT_LOAD, PT_NOTE, Segment,
};

/// Room for one path, in bytes with a zero at its end: two fill the smallest page, and the kernel takes no loader's
/// path above 4096 bytes (execve(2), `PATH_MAX`).
pub(super) const ROOM_BYTES: u64 = 2048;

/// The largest page of the machines that are supported (64-bit ARM).
const PAGE_BYTES_MAX: u64 = 64 * 1024;

/// Where in the file there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rooms {
    pub(super) loader: u64,
    pub(super) folder: u64,
}

/// The program with room for both paths.
pub(super) fn with_rooms(elf: &Elf<'_>) -> Result<(Vec<u8>, Rooms), String> {
    let damaged = || "has segments that cannot be".to_owned();
    let mut bytes = elf.bytes.to_vec();
    let loaded = elf.segments.iter().filter(|segment| segment.kind == PT_LOAD);
    let ends: Option<Vec<u64>> =
        loaded.map(|segment| segment.address.checked_add(segment.memory_size)).collect();
    let end = ends.and_then(|ends| ends.into_iter().max());
    let address = end.and_then(|end| end.checked_next_multiple_of(PAGE_BYTES_MAX)).ok_or_else(damaged)?;
    let offset = (bytes.len() as u64).checked_next_multiple_of(PAGE_BYTES_MAX).ok_or_else(damaged)?;
    let room = Segment {
        kind: PT_LOAD,
        flags: PF_R,
        offset,
        address,
        file_size: 2 * ROOM_BYTES,
        memory_size: 2 * ROOM_BYTES,
        alignment: PAGE_BYTES_MAX,
    };
    let loader =
        Segment { kind: PT_INTERP, file_size: ROOM_BYTES, memory_size: ROOM_BYTES, alignment: 1, ..room };
    let segments = rearranged(&elf.segments, loader, room)?;
    let table: Vec<u8> = segments.into_iter().flat_map(Segment::to_bytes).collect();
    put(&mut bytes, elf.table, &table)?;
    let names = elf.value(DT_STRTAB).ok_or("is dynamically linked, and has no names of libraries")?;
    // From where its other names stand to the room; ld.so adds it up as it is.
    let folder = Entry { tag: DT_RPATH, value: address.wrapping_add(ROOM_BYTES).wrapping_sub(names) };
    set_dynamic(&mut bytes, elf, Some(folder))?;
    let size = usize::try_from(offset + 2 * ROOM_BYTES).map_err(|_| damaged())?;
    bytes.resize(size, 0);
    Ok((bytes, Rooms { loader: offset, folder: offset + ROOM_BYTES }))
}

/// A library without folders of its own: those of the program count.
pub(super) fn forget_folders(bytes: &mut [u8]) -> Result<(), String> {
    let copy = bytes.to_vec();
    let elf = Elf::parse(&copy)?;
    if elf.dynamic.iter().any(|entry| matches!(entry.tag, DT_RPATH | DT_RUNPATH)) {
        set_dynamic(bytes, &elf, None)?;
    }
    Ok(())
}

/// What may give way to one more segment, the best first: notes that name its build, what processors it is protected on,
/// and what becomes read-only once it is started. More segments need a table elsewhere, which kernels before 5.18 tell
/// programs wrongly (`AT_PHDR`).
const GIVING_WAY: [u32; 3] = [PT_NOTE, PT_GNU_PROPERTY, PT_GNU_RELRO];

/// The same number of segments, with one more to load in the place of one that is not needed. Those to load stay in the
/// order of their addresses.
fn rearranged(segments: &[Segment], loader: Segment, room: Segment) -> Result<Vec<Segment>, String> {
    let mut all = segments.to_vec();
    let mut places =
        GIVING_WAY.iter().filter_map(|kind| all.iter().rposition(|segment| segment.kind == *kind));
    let place = places.next().ok_or("has no part that could give way to the path of its loader")?;
    all.remove(place);
    let last = all.iter().rposition(|segment| segment.kind == PT_LOAD).ok_or("has nothing to load")?;
    all.insert(last + 1, room);
    for segment in all.iter_mut().filter(|segment| segment.kind == PT_INTERP) {
        *segment = loader;
    }
    Ok(all)
}

/// Writes the dynamic section anew without folders of libraries, or with this one.
fn set_dynamic(bytes: &mut [u8], elf: &Elf<'_>, folder: Option<Entry>) -> Result<(), String> {
    let segment = elf.segment(PT_DYNAMIC).ok_or("has no dynamic section")?;
    let places = elf.content(segment).map_or(0, <[u8]>::len) / ENTRY_BYTES;
    let mut entries = elf.dynamic.clone();
    entries.retain(|entry| !matches!(entry.tag, DT_RPATH | DT_RUNPATH));
    if let Some(folder) = folder {
        if entries.len() + 1 >= places {
            // What debuggers look for; they manage without.
            entries.retain(|entry| entry.tag != DT_DEBUG);
        }
        entries.push(folder);
    }
    if entries.len() >= places {
        return Err("has no room in its dynamic section for the folder of its libraries".to_owned());
    }
    entries.resize(places, Entry { tag: DT_NULL, value: 0 });
    let section: Vec<u8> =
        entries.iter().flat_map(|entry| [entry.tag, entry.value]).flat_map(u64::to_le_bytes).collect();
    put(bytes, usize::try_from(segment.offset).unwrap_or(usize::MAX), &section)
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) -> Result<(), String> {
    let end = at.checked_add(what.len());
    let place = end.and_then(|end| bytes.get_mut(at..end)).ok_or("is cut off, or damaged")?;
    place.copy_from_slice(what);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn segment(kind: u32, address: u64) -> Segment {
        Segment { kind, flags: 0, offset: 0, address, file_size: 1, memory_size: 1, alignment: 1 }
    }

    #[test]
    fn what_is_loaded_stays_in_order_when_a_note_gives_way() {
        let (loader, room) = (segment(PT_INTERP, 9), segment(PT_LOAD, 9));
        let before =
            [segment(PT_NOTE, 0), segment(PT_INTERP, 1), segment(PT_LOAD, 2), segment(PT_DYNAMIC, 3)];
        let after = rearranged(&before, loader, room).expect("a note");
        assert_eq!(after, [loader, segment(PT_LOAD, 2), room, segment(PT_DYNAMIC, 3)]);
        assert!(rearranged(&before[1..], loader, room).is_err(), "nothing can give way");
    }
}
