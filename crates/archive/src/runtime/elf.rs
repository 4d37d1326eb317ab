//! Reads what the kernel and ld.so read of an executable: its segments and its dynamic section (System V ABI,
//! chapters 4 and 5; elf(5)). 64 bits, little endian, which is what Node.js and Bun exist for.
//!
//! Never panics over a file; errors go behind the file's name.

/// An ELF file.
#[derive(Debug)]
pub(super) struct Elf<'a> {
    pub(super) bytes: &'a [u8],
    machine: u16,
    /// Where its table of segments begins.
    pub(super) table: usize,
    pub(super) segments: Vec<Segment>,
    /// Its dynamic section up to its end, empty where it has none.
    pub(super) dynamic: Vec<Entry>,
}

/// A program header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) kind: u32,
    pub(super) flags: u32,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) file_size: u64,
    pub(super) memory_size: u64,
    pub(super) alignment: u64,
}

/// An entry of the dynamic section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) tag: u64,
    pub(super) value: u64,
}

/// Bytes of a program header.
pub(super) const SEGMENT_BYTES: usize = 56;

/// Bytes of an entry of the dynamic section.
pub(super) const ENTRY_BYTES: usize = 16;

pub(super) const PT_LOAD: u32 = 1;
pub(super) const PT_DYNAMIC: u32 = 2;
pub(super) const PT_INTERP: u32 = 3;
pub(super) const PT_NOTE: u32 = 4;
pub(super) const PT_GNU_RELRO: u32 = 0x6474_e552;
pub(super) const PT_GNU_PROPERTY: u32 = 0x6474_e553;
pub(super) const PF_R: u32 = 4;

pub(super) const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
pub(super) const DT_STRTAB: u64 = 5;
pub(super) const DT_RPATH: u64 = 15;
pub(super) const DT_DEBUG: u64 = 21;
pub(super) const DT_RUNPATH: u64 = 29;

const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

impl<'a> Elf<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err("is no program of this system (no ELF file)".to_owned());
        }
        if bytes.get(4..6) != Some(&[2, 1]) {
            return Err("is no program of 64 bits, little endian, which is all that is supported".to_owned());
        }
        let short = || "is cut off, or damaged".to_owned();
        let machine = u16_at(bytes, 18).ok_or_else(short)?;
        let table = usize::try_from(u64_at(bytes, 32).ok_or_else(short)?).map_err(|_| short())?;
        let size = u16_at(bytes, 54).ok_or_else(short)?;
        let count = u16_at(bytes, 56).ok_or_else(short)?;
        if usize::from(size) != SEGMENT_BYTES {
            return Err(short());
        }
        let mut segments = Vec::new();
        for number in 0..usize::from(count) {
            let at = table.checked_add(number * SEGMENT_BYTES).ok_or_else(short)?;
            segments.push(Segment::parse(bytes, at).ok_or_else(short)?);
        }
        let mut elf = Self { bytes, machine, table, segments, dynamic: Vec::new() };
        if let Some(dynamic) = elf.segment(PT_DYNAMIC) {
            let all = elf.content(dynamic).ok_or_else(short)?;
            for entry in all.chunks_exact(ENTRY_BYTES) {
                let tag = u64_at(entry, 0).ok_or_else(short)?;
                if tag == DT_NULL {
                    break;
                }
                elf.dynamic.push(Entry { tag, value: u64_at(entry, 8).ok_or_else(short)? });
            }
        }
        Ok(elf)
    }

    /// What it runs on.
    pub(super) fn target(&self) -> Result<&'static str, String> {
        match self.machine {
            EM_X86_64 => Ok("x86_64-linux"),
            EM_AARCH64 => Ok("aarch64-linux"),
            _ => Err("runs neither on x86-64 nor on 64-bit ARM".to_owned()),
        }
    }

    /// Whether both run on the same.
    pub(super) fn fits(&self, other: &Elf<'_>) -> bool {
        self.machine == other.machine
    }

    /// Its loader, where it is dynamically linked.
    pub(super) fn interpreter(&self) -> Result<Option<&'a str>, String> {
        let Some(segment) = self.segment(PT_INTERP) else { return Ok(None) };
        let path = self.content(segment).and_then(|bytes| bytes.split(|byte| *byte == 0).next());
        let path = path.and_then(|path| std::str::from_utf8(path).ok()).filter(|path| path.starts_with('/'));
        path.map(Some).ok_or_else(|| "names no loader that can be found".to_owned())
    }

    /// Names of the libraries that it needs, in its order.
    pub(super) fn needed(&self) -> Result<Vec<&'a str>, String> {
        let needed = self.dynamic.iter().filter(|entry| entry.tag == DT_NEEDED);
        needed.map(|entry| self.string(entry.value)).collect()
    }

    /// Folders in which its libraries are looked for: `DT_RUNPATH`, else `DT_RPATH`.
    pub(super) fn folders(&self) -> Result<Vec<&'a str>, String> {
        let named = self.value(DT_RUNPATH).or_else(|| self.value(DT_RPATH));
        let Some(value) = named else { return Ok(Vec::new()) };
        Ok(self.string(value)?.split(':').filter(|folder| !folder.is_empty()).collect())
    }

    pub(super) fn value(&self, tag: u64) -> Option<u64> {
        self.dynamic.iter().find(|entry| entry.tag == tag).map(|entry| entry.value)
    }

    pub(super) fn segment(&self, kind: u32) -> Option<Segment> {
        self.segments.iter().find(|segment| segment.kind == kind).copied()
    }

    pub(super) fn content(&self, segment: Segment) -> Option<&'a [u8]> {
        let start = usize::try_from(segment.offset).ok()?;
        let end = start.checked_add(usize::try_from(segment.file_size).ok()?)?;
        self.bytes.get(start..end)
    }

    /// A string of the dynamic section.
    fn string(&self, value: u64) -> Result<&'a str, String> {
        let find = || {
            let address = self.value(DT_STRTAB)?.wrapping_add(value);
            let loaded = self.segments.iter().find(|segment| {
                segment.kind == PT_LOAD
                    && address.checked_sub(segment.address).is_some_and(|at| at < segment.file_size)
            })?;
            let rest = self.content(*loaded)?.get(usize::try_from(address - loaded.address).ok()?..)?;
            let end = rest.iter().position(|byte| *byte == 0)?;
            std::str::from_utf8(rest.get(..end)?).ok()
        };
        find().ok_or_else(|| "has names of libraries that cannot be read".to_owned())
    }
}

impl Segment {
    fn parse(bytes: &[u8], at: usize) -> Option<Self> {
        let bytes = bytes.get(at..at.checked_add(SEGMENT_BYTES)?)?;
        Some(Self {
            kind: u32_at(bytes, 0)?,
            flags: u32_at(bytes, 4)?,
            offset: u64_at(bytes, 8)?,
            address: u64_at(bytes, 16)?,
            file_size: u64_at(bytes, 32)?,
            memory_size: u64_at(bytes, 40)?,
            alignment: u64_at(bytes, 48)?,
        })
    }

    /// As it stands in the file; the physical address, which nobody reads, is the virtual one.
    pub(super) fn to_bytes(self) -> [u8; SEGMENT_BYTES] {
        let mut bytes = [0; SEGMENT_BYTES];
        let words =
            [self.offset, self.address, self.address, self.file_size, self.memory_size, self.alignment];
        let halves = self.kind.to_le_bytes().into_iter().chain(self.flags.to_le_bytes());
        let all = halves.chain(words.into_iter().flat_map(u64::to_le_bytes));
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
