//! Frames through both directions: what is written is read again as it was, whatever surrounds it.

mod again;

use std::net::SocketAddr;

use onehop_wire::limits::{
    CONNECTION_SLOT, DATA_BYTES_MAX, FIELDS_MAX, FRAME_HEADER_BYTES, HEAD_BLOCK_BYTES_MAX,
    INLINE_BODY_BYTES_MAX, PAYLOAD_BYTES_MAX,
};
use onehop_wire::{
    Blocked, Broken, ConnectionKind, Facts, FieldName, FilePart, FileParts, Frame, HeadBlock, HeadWriter,
    Hello, Interned, NAMES, Payload, Pong, Ready, RequestParts, ResetCode, ResponseParts, Sender, Transport,
    decode, encode,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// A name and a value.
type Pair = (Vec<u8>, Vec<u8>);

/// A frame as it is written, with who sends it where.
#[derive(Debug, Clone)]
struct Sent {
    from: Sender,
    connection: ConnectionKind,
    slot: u16,
    generation: u32,
    end: bool,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Hello([u16; 4], [u32; 3], [Vec<u8>; 2]),
    Ready(u16, Transport, [Vec<u8>; 3]),
    Failed(Vec<u8>),
    Loaded(Vec<u8>),
    Blocked(Blocked),
    Ping(u64),
    Pong(Pong),
    Drain,
    Retire,
    Request(RequestParts, [Vec<u8>; 4], Vec<Pair>, Vec<u8>),
    Response(ResponseParts, Vec<Pair>, Vec<u8>),
    Informational(u16, Vec<Pair>),
    File(u16, u64, Option<u64>, Vec<Pair>, Vec<u8>),
    Data(Vec<u8>),
    Trailers(Vec<Pair>),
    Reset(ResetCode),
    Credit(u32),
    FilePart([u64; 4], Vec<u8>),
    FileSent(u64),
}

fn write_pairs(writer: &mut HeadWriter<'_>, pairs: &[Pair]) {
    for (name, value) in pairs {
        writer.field(name, value);
    }
}

fn write(out: &mut Vec<u8>, sent: &Sent) {
    let (slot, generation, end) = (sent.slot, sent.generation, sent.end);
    match &sent.content {
        Content::Hello(numbers, windows, [server, application]) => {
            let [version_min, version_max, connections, slots] = *numbers;
            let [stream_window, connection_window, begins_per_turn] = *windows;
            let hello = Hello {
                version_min,
                version_max,
                connections,
                slots,
                stream_window,
                connection_window,
                begins_per_turn,
                server,
                application,
            };
            encode::hello(out, &hello);
        }
        Content::Ready(version, transport, [runtime, runtime_version, library_version]) => {
            encode::ready(
                out,
                &Ready {
                    version: *version,
                    transport: *transport,
                    runtime,
                    runtime_version,
                    library_version,
                },
            );
        }
        Content::Failed(why) => encode::failed(out, why),
        Content::Loaded(paths) => encode::loaded(out, paths),
        Content::Blocked(blocked) => encode::blocked(out, *blocked),
        Content::Ping(token) => encode::ping(out, *token),
        Content::Pong(pong) => encode::pong(out, pong),
        Content::Drain => encode::drain(out),
        Content::Retire => encode::retire(out),
        Content::Request(parts, [target, authority, tls, method], pairs, body) => {
            let head = |writer: &mut HeadWriter<'_>| {
                writer.target(target);
                writer.authority(authority);
                writer.tls(tls);
                writer.method(method);
                write_pairs(writer, pairs);
            };
            encode::request(out, slot, generation, end, parts, head, body).unwrap();
        }
        Content::Response(parts, pairs, body) => {
            encode::response(out, slot, generation, end, parts, |head| write_pairs(head, pairs), body)
                .unwrap();
        }
        Content::Informational(status, pairs) => {
            encode::informational(out, slot, generation, *status, |head| write_pairs(head, pairs)).unwrap();
        }
        Content::File(status, offset, length, pairs, path) => {
            let parts = FileParts { status: *status, offset: *offset, length: *length, path };
            encode::file(out, slot, generation, &parts, |head| write_pairs(head, pairs)).unwrap();
        }
        Content::Data(bytes) => encode::data(out, slot, generation, end, bytes),
        Content::Trailers(pairs) => {
            encode::trailers(out, slot, generation, |head| write_pairs(head, pairs)).unwrap();
        }
        Content::Reset(code) => encode::reset(out, slot, generation, *code),
        Content::Credit(bytes) => encode::credit(out, slot, generation, *bytes),
        Content::FilePart([offset, length, device, inode], path) => {
            let part = FilePart { offset: *offset, length: *length, device: *device, inode: *inode, path };
            encode::file_part(out, slot, generation, &part).unwrap();
        }
        Content::FileSent(bytes) => encode::file_sent(out, slot, generation, *bytes),
    }
}

fn pairs(block: HeadBlock<'_>) -> Vec<Pair> {
    let pair = |field: onehop_wire::Field<'_>| (field.name.as_bytes().to_vec(), field.value.to_vec());
    block.fields().map(|field| pair(field.unwrap())).collect()
}

fn read(frame: &Frame<'_>, from: Sender, connection: ConnectionKind) -> Sent {
    let content = match frame.payload {
        Payload::Hello(hello) => Content::Hello(
            [hello.version_min, hello.version_max, hello.connections, hello.slots],
            [hello.stream_window, hello.connection_window, hello.begins_per_turn],
            [hello.server.to_vec(), hello.application.to_vec()],
        ),
        Payload::Ready(ready) => {
            let texts = [ready.runtime, ready.runtime_version, ready.library_version];
            Content::Ready(ready.version, ready.transport, texts.map(<[u8]>::to_vec))
        }
        Payload::Failed(why) => Content::Failed(why.to_vec()),
        Payload::Loaded(paths) => Content::Loaded(paths.to_vec()),
        Payload::Blocked(blocked) => Content::Blocked(blocked),
        Payload::Ping(token) => Content::Ping(token),
        Payload::Pong(pong) => Content::Pong(pong),
        Payload::Drain => Content::Drain,
        Payload::Retire => Content::Retire,
        Payload::Request(request) => {
            let parts = RequestParts {
                method_code: request.method_code,
                facts: request.facts,
                client: request.client,
                id: request.id,
                length: request.length,
            };
            let line = request.line().unwrap();
            let texts = [line.target, line.authority, line.tls, line.method].map(<[u8]>::to_vec);
            Content::Request(parts, texts, pairs(line.fields), request.body.to_vec())
        }
        Payload::Response(response) => Content::Response(
            ResponseParts { status: response.status, length: response.length },
            pairs(response.head),
            response.body.to_vec(),
        ),
        Payload::Informational(early) => Content::Informational(early.status, pairs(early.head)),
        Payload::File(file) => {
            Content::File(file.status, file.offset, file.length, pairs(file.head), file.path.to_vec())
        }
        Payload::Data(bytes) => Content::Data(bytes.to_vec()),
        Payload::Trailers(block) => Content::Trailers(pairs(block)),
        Payload::Reset(code) => Content::Reset(code),
        Payload::Credit(bytes) => Content::Credit(bytes),
        Payload::FilePart(part) => {
            Content::FilePart([part.offset, part.length, part.device, part.inode], part.path.to_vec())
        }
        Payload::FileSent(bytes) => Content::FileSent(bytes),
    };
    Sent { from, connection, slot: frame.slot, generation: frame.generation, end: frame.end, content }
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>().prop_filter("a line feed ends a record", |byte| *byte != b'\n'), 0..40)
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let interned = (0x80..=u8::MAX).prop_map(|byte| Interned::from_byte(byte).unwrap().spelling().to_vec());
    let odd = interned.clone().prop_map(|name| name.to_ascii_uppercase());
    prop_oneof![4 => interned, 1 => odd, 2 => "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}".prop_map(String::into_bytes)]
}

fn field_pairs() -> impl Strategy<Value = Vec<Pair>> {
    let byte = any::<u8>()
        .prop_filter("a control character", |byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f));
    vec((name(), vec(byte, 0..60)), 0..24)
}

fn client() -> impl Strategy<Value = Option<SocketAddr>> {
    option::of(any::<(std::net::IpAddr, u16)>().prop_map(SocketAddr::from))
}

/// All ones mean that it is not known.
fn length() -> impl Strategy<Value = Option<u64>> {
    option::of(0..u64::MAX)
}

fn control_frames() -> impl Strategy<Value = Sent> {
    let texts = || (text(), text(), text());
    let pong = any::<(u64, u32, u32, u64, u64, u64)>().prop_map(
        |(token, delay_us, in_flight, begun, heap_bytes, resident_bytes)| {
            Content::Pong(Pong { token, delay_us, in_flight, begun, heap_bytes, resident_bytes })
        },
    );
    let from_server = prop_oneof![
        (any::<[u16; 4]>(), any::<[u32; 3]>(), text(), text())
            .prop_map(|(numbers, windows, server, name)| Content::Hello(numbers, windows, [server, name])),
        any::<u64>().prop_map(Content::Ping),
        Just(Content::Drain),
        Just(Content::Retire),
    ];
    let from_worker = prop_oneof![
        (any::<u16>(), select(vec![Transport::Frames, Transport::Http, Transport::FramesForServer]), texts())
            .prop_map(|(version, transport, (a, b, c))| Content::Ready(version, transport, [a, b, c])),
        vec(any::<u8>(), 0..200).prop_map(Content::Failed),
        vec(any::<u8>(), 0..200).prop_map(Content::Loaded),
        pong,
        any::<(u32, u32)>().prop_map(|(duration_us, ended_us_ago)| {
            Content::Blocked(Blocked { duration_us, ended_us_ago })
        }),
        Just(Content::Drain),
    ];
    prop_oneof![
        from_server.prop_map(|content| (Sender::Server, content)),
        from_worker.prop_map(|content| (Sender::Worker, content))
    ]
    .prop_map(|(from, content)| Sent {
        from,
        connection: ConnectionKind::Control,
        slot: 0,
        generation: 0,
        end: false,
        content,
    })
}

fn request() -> impl Strategy<Value = Content> {
    let parts = (0..=9_u8, any::<u8>(), client(), any::<u64>(), length());
    let line = (text(), text(), text(), text());
    (parts, line, field_pairs(), vec(any::<u8>(), 0..300)).prop_map(
        |((method_code, facts, client, id, length), (a, b, c, d), fields, body)| {
            let is_odd = fields
                .iter()
                .any(|(name, _)| Interned::of(name).is_none() && Interned::is_known_in_any_case(name));
            let odd = if is_odd { Facts::ODD_SPELLING } else { Facts::NONE };
            let facts = Facts(facts & !Facts::ODD_SPELLING.0).with(odd);
            let parts = RequestParts { method_code, facts, client, id, length };
            Content::Request(parts, [a, b, c, d], fields, body)
        },
    )
}

fn data_frames() -> impl Strategy<Value = Sent> {
    use Sender::{Server, Worker};
    let body = || vec(any::<u8>(), 0..300);
    let answer_status = prop_oneof![1 => Just(101_u16), 8 => 200..=999_u16];
    let early_status = prop_oneof![Just(100_u16), 102..=199_u16];
    let sender = || select(vec![Server, Worker]);
    let both = prop_oneof![
        (sender(), body()).prop_map(|(from, bytes)| (from, Content::Data(bytes))),
        (sender(), field_pairs()).prop_map(|(from, fields)| (from, Content::Trailers(fields))),
        (sender(), any::<u32>()).prop_map(|(from, bytes)| (from, Content::Credit(bytes))),
        (sender(), any::<u32>())
            .prop_map(|(from, code)| (from, Content::Reset(ResetCode::from_number(code % 8, from)))),
    ];
    let response =
        (answer_status, length(), field_pairs(), body()).prop_map(|(status, length, fields, body)| {
            Content::Response(ResponseParts { status, length }, fields, body)
        });
    let file = (200..=999_u16, any::<u64>(), length(), field_pairs(), body()).prop_map(
        |(status, offset, length, fields, path)| match status {
            200 => Content::File(200, 0, None, fields, path),
            _ => Content::File(status, offset, length, fields, path),
        },
    );
    let file_part = (any::<[u64; 4]>(), body()).prop_map(|(numbers, path)| Content::FilePart(numbers, path));
    let informational =
        (early_status, field_pairs()).prop_map(|(status, fields)| Content::Informational(status, fields));
    let content = prop_oneof![
        3 => request().prop_map(|content| (Server, content)),
        3 => response.prop_map(|content| (Worker, content)),
        1 => informational.prop_map(|content| (Worker, content)),
        1 => file.prop_map(|content| (Worker, content)),
        1 => file_part.prop_map(|content| (Worker, content)),
        1 => any::<u64>().prop_map(|bytes| (Server, Content::FileSent(bytes))),
        4 => both,
    ];
    (content, 0..CONNECTION_SLOT, any::<u32>(), any::<bool>()).prop_map(
        |((from, content), slot, generation, maybe)| {
            let end = match &content {
                Content::Data(bytes) => maybe || bytes.is_empty(),
                Content::Request(..) => maybe,
                Content::Response(parts, ..) => maybe && parts.status != 101,
                Content::File(..) | Content::Trailers(_) => true,
                _ => false,
            };
            Sent { from, connection: ConnectionKind::Data, slot, generation, end, content }
        },
    )
}

fn frames() -> impl Strategy<Value = Sent> {
    prop_oneof![1 => control_frames(), 4 => data_frames()]
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(sent in frames(), before in vec(any::<u8>(), 0..20), after: Vec<u8>) {
        let mut out = before.clone();
        write(&mut out, &sent);
        let bytes = out.len() - before.len();
        out.extend_from_slice(&after);
        prop_assert_eq!(&out[..before.len()], &before[..]);
        let (frame, taken) = decode(&out[before.len()..], sent.from, sent.connection).unwrap().unwrap();
        prop_assert_eq!(taken, bytes);
        prop_assert_eq!(format!("{:?}", read(&frame, sent.from, sent.connection)), format!("{sent:?}"));
        let frame_bytes = &out[before.len()..before.len() + bytes];
        prop_assert!(again::is_canonical(&frame, frame_bytes, sent.from));
        prop_assert_eq!(again::write(&frame).unwrap(), frame_bytes);
    }

    #[test]
    fn every_beginning_of_a_frame_asks_for_more(sent in frames()) {
        let mut out = Vec::new();
        write(&mut out, &sent);
        for cut in 0..out.len() {
            prop_assert_eq!(decode(&out[..cut], sent.from, sent.connection), Ok(None), "cut at {}", cut);
        }
    }

    #[test]
    fn any_changed_byte_is_read_or_refused(sent in frames(), at: prop::sample::Index, byte: u8) {
        let mut out = Vec::new();
        write(&mut out, &sent);
        let at = at.index(out.len());
        out[at] = byte;
        for from in [Sender::Server, Sender::Worker] {
            for connection in [ConnectionKind::Control, ConnectionKind::Data] {
                if let Ok(Some((frame, taken))) = decode(&out, from, connection) {
                    prop_assert!(taken <= out.len());
                    drop(again::write(&frame));
                }
            }
        }
    }
}

const PARTS: RequestParts =
    RequestParts { method_code: 1, facts: Facts::NONE, client: None, id: 1, length: None };

fn request_with(head: impl FnOnce(&mut HeadWriter<'_>), body: &[u8]) -> Result<Vec<u8>, Broken> {
    let mut out = b"before".to_vec();
    let written = encode::request(&mut out, 3, 9, false, &PARTS, head, body);
    if written.is_err() {
        assert_eq!(out, b"before", "what cannot be written leaves nothing");
    }
    written.map(|()| out.split_off(b"before".len()))
}

#[test]
fn a_request_has_empty_records_for_what_is_not_written_of_its_line() {
    for (given, expected) in
        [(0, &b"\n\n\n\n"[..]), (1, b"/\n\n\n\n"), (2, b"/\na\n\n\n"), (3, b"/\na\nt\n\n")]
    {
        let lines = |writer: &mut HeadWriter<'_>| {
            if given > 0 {
                writer.target(b"/");
            }
            if given > 1 {
                writer.authority(b"a");
            }
            if given > 2 {
                writer.tls(b"t");
            }
            writer.field(b"X", b"1");
        };
        let out = request_with(lines, b"").unwrap();
        assert_eq!(out[FRAME_HEADER_BYTES + 44..], [expected, b"X:1\n"].concat());
    }
    let only_method = request_with(|writer| writer.method(b"PROPFIND"), b"").unwrap();
    assert_eq!(&only_method[FRAME_HEADER_BYTES + 44..], b"\n\n\nPROPFIND\n");
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a field's value has a control character")]
fn a_field_that_would_be_two_is_a_fault_of_ours() {
    drop(request_with(|writer| writer.field(b"X", b"1\nY:2"), b""));
}

#[test]
#[cfg(not(debug_assertions))]
fn a_field_that_would_be_two_is_left_out() {
    let head = |writer: &mut HeadWriter<'_>| {
        writer.field(b"X", b"1\nY:2");
        writer.field(b"Y\n", b"1");
        writer.field(b"Z", b"3");
    };
    let out = request_with(head, b"").unwrap();
    assert_eq!(&out[FRAME_HEADER_BYTES + 44..], b"\n\n\n\nZ:3\n");
}

#[test]
fn only_a_known_name_in_a_third_spelling_is_an_odd_one() {
    for (name, odd) in [(&b"Accept"[..], false), (b"accept", false), (b"ACCEPT", true), (b"X-Own", false)] {
        let out = request_with(|writer| writer.field(name, b"1"), b"").unwrap();
        assert_eq!(out[FRAME_HEADER_BYTES + 1] == Facts::ODD_SPELLING.0, odd, "{}", name.escape_ascii());
    }
}

#[test]
fn an_interned_name_that_came_in_full_is_read_as_a_literal_one() {
    let block = HeadBlock::new(b"Accept:*/*\n\x80*/*\n").unwrap();
    let names: Vec<_> = block.fields().map(|field| field.unwrap().name).collect();
    assert_eq!(names, [FieldName::Literal(b"Accept"), FieldName::Interned(Interned::ACCEPT)]);
    assert_eq!(names[0].as_bytes(), names[1].as_bytes());
}

#[test]
fn after_a_broken_field_no_more_come() {
    let block = HeadBlock::new(b"a:1\nb\nc:3\n").unwrap();
    let fields: Vec<_> = block.fields().collect();
    assert_eq!(fields.len(), 2);
    assert_eq!(fields[1], Err(Broken::FieldWithoutColon));
    assert_eq!(block.records().count(), 3);
}

#[test]
fn the_longest_of_everything_fits_and_one_more_does_not() {
    let body = vec![b'b'; INLINE_BODY_BYTES_MAX + 1];
    // Four line feeds before it, a name, a colon and a line feed around it.
    let value = vec![b'v'; HEAD_BLOCK_BYTES_MAX - 4 - 3 + 1];
    let field = |less: usize| {
        let value = &value[less..];
        move |writer: &mut HeadWriter<'_>| writer.field(b"X", value)
    };
    let out = request_with(field(1), &body[1..]).unwrap();
    let (frame, taken) = decode(&out, Sender::Server, ConnectionKind::Data).unwrap().unwrap();
    assert_eq!(taken, out.len());
    assert_eq!(again::write(&frame).unwrap(), out);
    assert_eq!(request_with(field(0), b""), Err(Broken::HeadTooLong(HEAD_BLOCK_BYTES_MAX + 1)));
    let body_bytes = body.len();
    assert_eq!(request_with(field(1), &body), Err(Broken::InlineBodyTooLong(body_bytes)));

    let fields = |count: usize| {
        move |writer: &mut HeadWriter<'_>| (0..count).for_each(|_| writer.field(b"Set-Cookie", b"a"))
    };
    let out = request_with(fields(FIELDS_MAX), b"").unwrap();
    let (frame, _) = decode(&out, Sender::Server, ConnectionKind::Data).unwrap().unwrap();
    let Payload::Request(request) = frame.payload else { panic!("{frame:?}") };
    assert_eq!(request.line().unwrap().fields.fields().filter(|field| field.is_ok()).count(), FIELDS_MAX);
    assert_eq!(request_with(fields(FIELDS_MAX + 1), b""), Err(Broken::TooManyFields));
}

#[test]
fn a_path_takes_what_the_payload_leaves() {
    let path = vec![b'p'; PAYLOAD_BYTES_MAX];
    // Status, zero, lengths of head and body, offset, length, the path's length.
    let longest = PAYLOAD_BYTES_MAX - 36;
    let mut out = Vec::new();
    let parts = |bytes: usize| FileParts { status: 200, offset: 0, length: None, path: &path[..bytes] };
    encode::file(&mut out, 0, 0, &parts(longest), |_| ()).unwrap();
    let (frame, taken) = decode(&out, Sender::Worker, ConnectionKind::Data).unwrap().unwrap();
    assert_eq!(taken, FRAME_HEADER_BYTES + PAYLOAD_BYTES_MAX);
    assert!(matches!(frame.payload, Payload::File(file) if file.path.len() == longest));
    let refused = encode::file(&mut out, 0, 0, &parts(longest + 1), |_| ());
    assert_eq!(refused, Err(Broken::FrameTooLong(PAYLOAD_BYTES_MAX as u32 + 1)));
    assert_eq!(out.len(), taken);
}

#[test]
fn data_is_cut_into_frames_that_can_be_sent() {
    for (bytes, end, expected) in [
        (0, false, vec![]),
        (0, true, vec![(0, true)]),
        (1, false, vec![(1, false)]),
        (DATA_BYTES_MAX, true, vec![(DATA_BYTES_MAX, true)]),
        (DATA_BYTES_MAX + 1, true, vec![(DATA_BYTES_MAX, false), (1, true)]),
        (2 * DATA_BYTES_MAX, false, vec![(DATA_BYTES_MAX, false); 2]),
    ] {
        let mut out = Vec::new();
        encode::data(&mut out, 1, 2, end, &vec![b'd'; bytes]);
        let (mut rest, mut seen) = (&out[..], Vec::new());
        while let Some((frame, taken)) = decode(rest, Sender::Worker, ConnectionKind::Data).unwrap() {
            let Payload::Data(data) = frame.payload else { panic!("{frame:?}") };
            seen.push((data.len(), frame.end));
            rest = &rest[taken..];
        }
        assert_eq!((seen, rest.len()), (expected, 0));
    }
}

#[test]
fn numbers_that_a_frame_cannot_have_are_not_written() {
    let mut out = Vec::new();
    let parts = RequestParts { method_code: 10, ..PARTS };
    assert_eq!(encode::request(&mut out, 0, 0, true, &parts, |_| (), b""), Err(Broken::MethodCode(10)));
    for (status, end, refused) in [
        (100, false, Broken::Status(100)),
        (1000, true, Broken::Status(1000)),
        (101, true, Broken::EndNotAllowed),
    ] {
        let parts = ResponseParts { status, length: None };
        assert_eq!(encode::response(&mut out, 0, 0, end, &parts, |_| (), b""), Err(refused));
    }
    assert_eq!(encode::informational(&mut out, 0, 0, 101, |_| ()), Err(Broken::Status(101)));
    let parts = FileParts { status: 200, offset: 1, length: None, path: b"a" };
    assert_eq!(encode::file(&mut out, 0, 0, &parts, |_| ()), Err(Broken::FileRange));
    assert!(out.is_empty());
}

#[test]
fn a_length_is_refused_with_four_bytes_and_a_kind_with_five() {
    for announced in [PAYLOAD_BYTES_MAX as u32 + 1, u32::MAX] {
        let bytes = announced.to_le_bytes();
        assert_eq!(
            decode(&bytes, Sender::Server, ConnectionKind::Data),
            Err(Broken::FrameTooLong(announced))
        );
        assert_eq!(decode(&bytes[..3], Sender::Server, ConnectionKind::Data), Ok(None));
    }
    let longest = (PAYLOAD_BYTES_MAX as u32).to_le_bytes();
    assert_eq!(decode(&longest, Sender::Server, ConnectionKind::Data), Ok(None));
    assert_eq!(
        decode(&[0, 0, 0, 0, 0x42], Sender::Server, ConnectionKind::Data),
        Err(Broken::UnknownKind(0x42))
    );
    assert_eq!(
        decode(&[0, 0, 0, 0, 0x10], Sender::Worker, ConnectionKind::Data),
        Err(Broken::WrongSender(0x10))
    );
    assert_eq!(
        decode(&[0, 0, 0, 0, 0x10], Sender::Server, ConnectionKind::Control),
        Err(Broken::WrongConnection(0x10))
    );
}

#[test]
fn a_code_of_the_other_side_counts_as_the_general_one() {
    for (number, from_server, from_worker) in [
        (0, ResetCode::ClientGone, ResetCode::Failed),
        (1, ResetCode::ClientGone, ResetCode::Failed),
        (2, ResetCode::Timeout, ResetCode::Failed),
        (3, ResetCode::ClientGone, ResetCode::Failed),
        (4, ResetCode::ClientGone, ResetCode::Refused),
        (5, ResetCode::NotNeeded, ResetCode::Failed),
        (6, ResetCode::Broken, ResetCode::Failed),
        (7, ResetCode::ClientGone, ResetCode::HangUp),
        (u32::MAX, ResetCode::ClientGone, ResetCode::Failed),
    ] {
        assert_eq!(ResetCode::from_number(number, Sender::Server), from_server);
        assert_eq!(ResetCode::from_number(number, Sender::Worker), from_worker);
    }
    assert_eq!(NAMES, 64);
}
