//! What can be wrong with the other side's bytes.
//!
//! Owns the list and its labels. Says what was seen, never what is to be done about it: that is the caller's.

/// How the other side broke the protocol. The connection that it came on is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The length in the frame's header is above [`PAYLOAD_BYTES_MAX`](crate::limits::PAYLOAD_BYTES_MAX).
    #[error("a frame announces {0} bytes of payload, more than any frame has")]
    FrameTooLong(u32),
    /// No frame has this kind.
    #[error("no frame has kind {0:#04x}")]
    UnknownKind(u8),
    /// The frame exists, but the other side never sends it.
    #[error("kind {0:#04x} is not sent from this side")]
    WrongSender(u8),
    /// The frame exists, but not on this connection.
    #[error("kind {0:#04x} does not belong on this connection")]
    WrongConnection(u8),
    /// A flag other than END is set.
    #[error("flags {0:#04x} are not known")]
    UnknownFlags(u8),
    /// END on a frame that ends nothing.
    #[error("END on a frame that cannot have it")]
    EndNotAllowed,
    /// A frame that is always the last one came without END.
    #[error("a frame that is always the last comes without END")]
    EndMissing,
    /// A frame of the control connection names a slot or a generation.
    #[error("a frame of the control connection names slot {0}, generation {1}")]
    ControlSlot(u16, u32),
    /// The connection's own slot on a frame that is about an exchange, or with a generation.
    #[error("the connection's own slot is for CREDIT with generation 0 only")]
    ConnectionSlot,
    /// The payload ends before what its kind says.
    #[error("the payload is too short for its kind")]
    PayloadTooShort,
    /// The payload goes on after what its kind says.
    #[error("the payload is longer than its kind says")]
    PayloadTooLong,
    /// Bytes that are always zero are not.
    #[error("bytes that are always zero are not")]
    ReservedNotZero,
    /// The text of HELLO or READY does not consist of its records.
    #[error("the text does not have the records that belong there")]
    TextRecords,
    /// A worker is ready to be spoken to in a way that is neither frames nor HTTP.
    #[error("a worker cannot be spoken to in way {0}")]
    Transport(u16),
    /// A request's method number is not in the table.
    #[error("no method has number {0}")]
    MethodCode(u8),
    /// A client's address is neither none, IPv4 nor IPv6.
    #[error("no address has kind {0}")]
    AddressKind(u8),
    /// A status that this frame cannot have.
    #[error("status {0} cannot stand in this frame")]
    Status(u16),
    /// More bytes than a head block may have.
    #[error("a head block of {0} bytes is too long")]
    HeadTooLong(usize),
    /// A head block's last record has no line feed.
    #[error("the last record of a head block is not ended")]
    HeadUnterminated,
    /// A request's head block ends before its four leading records.
    #[error("a request's head block ends before its first field could come")]
    LeadingRecords,
    /// More than [`FIELDS_MAX`](crate::limits::FIELDS_MAX) fields.
    #[error("a head block has too many fields")]
    TooManyFields,
    /// A field record without a colon after its name.
    #[error("a field has no colon after its name")]
    FieldWithoutColon,
    /// A field's name is empty or not a token (RFC 9110 section 5.6.2).
    #[error("a field's name is not a token")]
    FieldName,
    /// A field's value has CR, NUL or another control character (RFC 9110 section 5.5).
    #[error("a field's value has a control character")]
    FieldValue,
    /// More inline body than one frame may carry.
    #[error("{0} bytes of a body are too many behind a head")]
    InlineBodyTooLong(usize),
    /// More bytes than one DATA frame may carry.
    #[error("{0} bytes are too many for one DATA frame")]
    DataTooLong(usize),
    /// A DATA frame without bytes that does not end its body.
    #[error("a DATA frame has neither bytes nor END")]
    DataEmpty,
    /// FILE with status 200 chooses its own part of the file.
    #[error("a file with status 200 is sent whole, conditions and ranges are the server's")]
    FileRange,
    /// More bytes came than were granted.
    #[error("more bytes came than were granted")]
    CreditExceeded,
    /// A window was raised above what four bytes can say.
    #[error("credit raises a window above what four bytes can say")]
    CreditOverflow,
}

impl Broken {
    /// A label for counters, logs and test vectors.
    pub const fn name(self) -> &'static str {
        match self {
            Broken::FrameTooLong(_) => "frame_too_long",
            Broken::UnknownKind(_) => "unknown_kind",
            Broken::WrongSender(_) => "wrong_sender",
            Broken::WrongConnection(_) => "wrong_lane",
            Broken::UnknownFlags(_) => "unknown_flags",
            Broken::EndNotAllowed => "end_not_allowed",
            Broken::EndMissing => "end_missing",
            Broken::ControlSlot(..) => "control_slot",
            Broken::ConnectionSlot => "lane_slot",
            Broken::PayloadTooShort => "payload_too_short",
            Broken::PayloadTooLong => "payload_too_long",
            Broken::ReservedNotZero => "reserved_not_zero",
            Broken::Transport(_) => "transport",
            Broken::TextRecords => "text_records",
            Broken::MethodCode(_) => "method_code",
            Broken::AddressKind(_) => "address_kind",
            Broken::Status(_) => "status",
            Broken::HeadTooLong(_) => "head_too_long",
            Broken::HeadUnterminated => "head_unterminated",
            Broken::LeadingRecords => "leading_records",
            Broken::TooManyFields => "too_many_fields",
            Broken::FieldWithoutColon => "field_without_colon",
            Broken::FieldName => "field_name",
            Broken::FieldValue => "field_value",
            Broken::InlineBodyTooLong(_) => "inline_body_too_long",
            Broken::DataTooLong(_) => "data_too_long",
            Broken::DataEmpty => "data_empty",
            Broken::FileRange => "file_range",
            Broken::CreditExceeded => "credit_exceeded",
            Broken::CreditOverflow => "credit_overflow",
        }
    }
}
