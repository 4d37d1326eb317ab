//! What a packet says about itself, as far as round trips are counted by it.
//!
//! PURE: bytes in, facts out. It must never look into a segment's content.

/// Bytes of an IPv4 header without options (RFC 791 section 3.1).
const IPV4_HEADER_BYTES: usize = 20;
/// Bytes of a TCP header without options (RFC 9293 section 3.1).
const TCP_HEADER_BYTES: usize = 20;
/// TCP's number in the IPv4 header.
const TCP: u8 = 6;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RESET: u8 = 0x04;

/// The end that a packet goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Towards {
    /// A client's packet.
    Far,
    /// A server's.
    Near,
}

/// A TCP segment over IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The port at the near end.
    pub near_port: u16,
    /// The port at the far end.
    pub far_port: u16,
    /// Bytes of content.
    pub content: u32,
    /// It opens a connection.
    pub opens: bool,
    /// It closes one, in peace or by a reset.
    pub closes: bool,
}

impl Segment {
    /// Reads an IP packet; `None` for what is no first fragment of TCP over IPv4.
    pub(super) fn read(packet: &[u8], towards: Towards) -> Option<Segment> {
        let first = *packet.first()?;
        let header = usize::from(first & 0x0f) * 4;
        let number =
            |bytes: &[u8], at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        let is_later_fragment = number(packet, 6)? & 0x1fff != 0;
        if first >> 4 != 4 || header < IPV4_HEADER_BYTES || *packet.get(9)? != TCP || is_later_fragment {
            return None;
        }
        let length = usize::from(number(packet, 2)?);
        let tcp = packet.get(header..length)?;
        let (from, to) = (number(tcp, 0)?, number(tcp, 2)?);
        let (near_port, far_port) = match towards {
            Towards::Far => (from, to),
            Towards::Near => (to, from),
        };
        let tcp_header = usize::from(*tcp.get(12)? >> 4) * 4;
        let flags = *tcp.get(13)?;
        if tcp_header < TCP_HEADER_BYTES {
            return None;
        }
        let content = u32::try_from(tcp.len().checked_sub(tcp_header)?).ok()?;
        Some(Segment {
            near_port,
            far_port,
            content,
            opens: flags & SYN != 0,
            closes: flags & (FIN | RESET) != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(flags: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(40 + content.len()).unwrap().to_be_bytes();
        let mut bytes = vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, TCP, 0, 0];
        bytes.extend([100, 2, 3, 1, 100, 2, 3, 4]);
        bytes.extend([0x9c, 0x40, 0x1e, 0x26, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        bytes.extend(content);
        bytes
    }

    #[test]
    fn ports_are_those_of_the_end_and_not_of_the_direction() {
        let out = Segment::read(&packet(SYN, b""), Towards::Far).unwrap();
        assert_eq!((out.near_port, out.far_port, out.opens, out.content), (40_000, 7_718, true, 0));
        let back = Segment::read(&packet(0x10, b"abc"), Towards::Near).unwrap();
        assert_eq!((back.near_port, back.far_port, back.opens, back.content), (7_718, 40_000, false, 3));
        assert!(Segment::read(&packet(FIN | 0x10, b""), Towards::Far).unwrap().closes);
    }

    #[test]
    fn bytes_behind_the_packets_own_length_are_no_content() {
        let mut bytes = packet(0x10, b"abc");
        bytes.extend([0; 6]);
        assert_eq!(Segment::read(&bytes, Towards::Far).unwrap().content, 3);
    }

    #[test]
    fn what_is_no_whole_segment_is_none_and_never_a_panic() {
        let whole = packet(0x10, b"abc");
        for end in 0..whole.len() {
            assert_eq!(Segment::read(&whole[..end], Towards::Far), None);
        }
        let changed = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            Segment::read(&bytes, Towards::Far)
        };
        assert_eq!(changed(0, 0x65), None, "IPv6");
        assert_eq!(changed(0, 0x44), None, "a header that is too short");
        assert_eq!(changed(9, 17), None, "UDP");
        assert_eq!(changed(7, 1), None, "a later fragment");
        assert_eq!(changed(32, 0x40), None, "a TCP header that is too short");
        assert_eq!(changed(32, 0xf0), None, "a TCP header longer than the packet");
    }
}
