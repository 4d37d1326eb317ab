//! Frames through both directions: what is written is read again as it was.

use onehop_wire::{Facts, FieldName, Interned, Lane, Payload, RequestParts, Sender, decode, encode};

#[test]
fn a_request_is_read_as_it_was_written() {
    let mut out = Vec::new();
    let parts = RequestParts {
        method_code: 1,
        facts: Facts::ENCRYPTED,
        client: Some("192.0.2.7:4711".parse().unwrap()),
        id: 0x0123_4567_89ab_cdef,
        length: Some(0),
    };
    encode::request(
        &mut out,
        3,
        9,
        true,
        &parts,
        |head| {
            head.target(b"/a?b=c");
            head.authority(b"app.example");
            head.field(b"Host", b"app.example");
            head.field(b"cookie", b"a=b");
            head.field(b"X-Own", b"\xe9");
            head.field(b"ACCEPT", b"*/*");
        },
        b"",
    )
    .unwrap();
    let (frame, taken) = decode(&out, Sender::Server, Lane::Data).unwrap().unwrap();
    assert_eq!((taken, frame.slot, frame.generation, frame.end), (out.len(), 3, 9, true));
    let Payload::Request(request) = frame.payload else { panic!("{frame:?}") };
    assert_eq!(request.client, parts.client);
    assert_eq!((request.id, request.length), (parts.id, parts.length));
    assert_eq!(request.facts, Facts::ENCRYPTED.with(Facts::ODD_SPELLING));
    let line = request.line().unwrap();
    assert_eq!(
        (line.target, line.authority, line.tls, line.method),
        (&b"/a?b=c"[..], &b"app.example"[..], &b""[..], &b""[..])
    );
    let fields: Vec<_> = line.fields.fields().map(|field| field.unwrap()).collect();
    let names: Vec<&[u8]> = fields.iter().map(|field| field.name.as_bytes()).collect();
    assert_eq!(names, [&b"Host"[..], b"cookie", b"X-Own", b"ACCEPT"]);
    assert_eq!(fields[0].name, FieldName::Interned(Interned::HOST));
    for cut in 0..out.len() {
        assert_eq!(decode(&out[..cut], Sender::Server, Lane::Data), Ok(None), "cut at {cut}");
    }
}
