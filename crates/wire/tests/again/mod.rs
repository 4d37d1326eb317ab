//! Writes a frame that was read once more, for tests, vectors and fuzzing.

use onehop_wire::{
    Broken, Facts, FieldName, FileParts, Frame, HeadBlock, HeadWriter, Interned, Payload, RequestParts,
    ResponseParts, Sender, encode,
};

/// The bytes of this frame as the encoder writes them, or what is wrong with its head block.
pub(crate) fn write(frame: &Frame<'_>) -> Result<Vec<u8>, Broken> {
    let mut out = Vec::new();
    let (slot, generation, end) = (frame.slot, frame.generation, frame.end);
    match &frame.payload {
        Payload::Hello(hello) => encode::hello(&mut out, hello),
        Payload::Ready(ready) => encode::ready(&mut out, ready),
        Payload::Failed(why) => encode::failed(&mut out, why),
        Payload::Ping(token) => encode::ping(&mut out, *token),
        Payload::Pong(pong) => encode::pong(&mut out, pong),
        Payload::Blocked(blocked) => encode::blocked(&mut out, *blocked),
        Payload::Drain => encode::drain(&mut out),
        Payload::Retire => encode::retire(&mut out),
        Payload::Loaded(paths) => encode::loaded(&mut out, paths),
        Payload::Request(request) => {
            let line = request.line()?;
            check_fields(line.fields)?;
            let parts = RequestParts {
                method_code: request.method_code,
                facts: request.facts,
                client: request.client,
                id: request.id,
                length: request.length,
            };
            let head = |writer: &mut HeadWriter<'_>| {
                writer.target(line.target);
                writer.authority(line.authority);
                writer.tls(line.tls);
                writer.method(line.method);
                write_fields(writer, line.fields);
            };
            encode::request(&mut out, slot, generation, end, &parts, head, request.body)?;
        }
        Payload::Response(response) => {
            check_fields(response.head)?;
            let parts = ResponseParts { status: response.status, length: response.length };
            let head = |writer: &mut HeadWriter<'_>| write_fields(writer, response.head);
            encode::response(&mut out, slot, generation, end, &parts, head, response.body)?;
        }
        Payload::Informational(early) => {
            check_fields(early.head)?;
            let head = |writer: &mut HeadWriter<'_>| write_fields(writer, early.head);
            encode::informational(&mut out, slot, generation, early.status, head)?;
        }
        Payload::File(file) => {
            check_fields(file.head)?;
            let parts =
                FileParts { status: file.status, offset: file.offset, length: file.length, path: file.path };
            let head = |writer: &mut HeadWriter<'_>| write_fields(writer, file.head);
            encode::file(&mut out, slot, generation, &parts, head)?;
        }
        Payload::Data(bytes) => encode::data(&mut out, slot, generation, end, bytes),
        Payload::Trailers(fields) => {
            check_fields(*fields)?;
            encode::trailers(&mut out, slot, generation, |writer| write_fields(writer, *fields))?;
        }
        Payload::Reset(code) => encode::reset(&mut out, slot, generation, *code),
        Payload::Credit(bytes) => encode::credit(&mut out, slot, generation, *bytes),
        Payload::FilePart(part) => encode::file_part(&mut out, slot, generation, part)?,
        Payload::FileSent(bytes) => encode::file_sent(&mut out, slot, generation, *bytes),
    }
    Ok(out)
}

/// Whether the encoder would write these bytes, which `from` sent, for the frame that was read from them.
pub(crate) fn is_canonical(frame: &Frame<'_>, bytes: &[u8], from: Sender) -> bool {
    match &frame.payload {
        Payload::Request(request) => {
            let Ok(line) = request.line() else { return false };
            let is_odd = literal_names(line.fields).any(Interned::is_known_in_any_case);
            has_short_names(line.fields) && (!is_odd || request.facts.has(Facts::ODD_SPELLING))
        }
        Payload::Response(response) => has_short_names(response.head),
        Payload::Informational(early) => has_short_names(early.head),
        // The length that is ignored: sixteen bytes before the head block, half of them the length.
        Payload::File(file) => has_short_names(file.head) && bytes.get(20..28) == Some(&[0xff; 8]),
        Payload::Trailers(fields) => has_short_names(*fields),
        Payload::Reset(code) => {
            bytes.get(12..16) == Some(&code.number().to_le_bytes())
                && *code == onehop_wire::ResetCode::from_number(code.number(), from)
        }
        _ => true,
    }
}

fn check_fields(fields: HeadBlock<'_>) -> Result<(), Broken> {
    fields.fields().try_for_each(|field| field.map(|_| ()))
}

fn write_fields(writer: &mut HeadWriter<'_>, fields: HeadBlock<'_>) {
    for field in fields.fields().flatten() {
        match field.name {
            FieldName::Interned(name) => writer.interned(name, field.value),
            FieldName::Literal(name) => writer.field(name, field.value),
        }
    }
}

fn literal_names(fields: HeadBlock<'_>) -> impl Iterator<Item = &[u8]> {
    fields.fields().flatten().filter_map(|field| match field.name {
        FieldName::Interned(_) => None,
        FieldName::Literal(name) => Some(name),
    })
}

fn has_short_names(fields: HeadBlock<'_>) -> bool {
    literal_names(fields).all(|name| Interned::of(name).is_none())
}
