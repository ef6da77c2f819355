//! The framing of gRPC: messages, `grpc-message` and `grpc-timeout`.

use std::time::Duration;

use nuncio_protocol::grpc::frame::{
    FrameDecoder, decode_message, encode, encode_message, format_timeout, parse_timeout,
};
use nuncio_protocol::{A2aError, ErrorKind, GrpcStatus, StatusProfile};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::Index;

fn taken(decoder: &mut FrameDecoder) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| decoder.next_message().unwrap())
        .map(Vec::from)
        .collect()
}

fn grpc_status(error: &A2aError) -> GrpcStatus {
    error.kind.grpc_status(StatusProfile::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_split_gives_the_same_messages(
        messages in vec(vec(any::<u8>(), 0..40), 0..6),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let body: Vec<u8> = messages.iter().flat_map(|message| encode(message)).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let mut decoder = FrameDecoder::new(40);
        let mut found = Vec::new();
        for ends in cuts.windows(2) {
            decoder.push(&body[ends[0]..ends[1]]);
            found.append(&mut taken(&mut decoder));
        }
        prop_assert_eq!(found, messages);
        prop_assert!(decoder.finish().is_ok());
    }

    #[test]
    fn random_bytes_are_refused_or_read(body in vec(any::<u8>(), 0..60)) {
        let mut decoder = FrameDecoder::new(1000);
        decoder.push(&body);
        while let Ok(Some(message)) = decoder.next_message() {
            prop_assert!(message.len() <= body.len());
        }
        let _ = decoder.finish();
    }

    #[test]
    fn texts_of_errors_survive(text in "(?s).{0,40}", header in "(?s).{0,40}") {
        let written = encode_message(&text);
        prop_assert!(written.bytes().all(|b| (0x20..0x7f).contains(&b)), "{}", written);
        prop_assert_eq!(decode_message(&written), text);
        decode_message(&header);
    }

    #[test]
    fn timeouts_are_never_shortened(seconds in any::<u64>(), nanos in 0u32..1_000_000_000) {
        for timeout in [Duration::new(seconds, nanos), Duration::new(seconds % 100_000, nanos)] {
            let text = format_timeout(timeout);
            prop_assert!(text.len() <= 9, "{}", text);
            let read = parse_timeout(&text).unwrap();
            let longest = Duration::from_secs(99_999_999 * 3600);
            prop_assert!(read >= timeout.min(longest), "{} for {:?}", text, timeout);
            prop_assert_eq!(format_timeout(read), text);
        }
    }

    #[test]
    fn any_header_is_a_timeout_or_none(header in "(?s).{0,12}") {
        parse_timeout(&header);
    }
}

/// BR-135: refused by its prefix alone, and not as something to try again.
#[test]
fn a_message_too_large_is_refused_by_its_prefix() {
    let mut decoder = FrameDecoder::new(3);
    decoder.push(&encode(b"abc"));
    decoder.push(&[0, 0, 0, 0, 4]);
    assert_eq!(taken_one(&mut decoder).as_deref(), Some(&b"abc"[..]));
    let error = decoder.next_message().unwrap_err();
    assert_eq!(grpc_status(&error), GrpcStatus::ResourceExhausted);
    assert!(error.message.contains("larger than 3 bytes"), "{error}");
    assert!(!error.kind.is_retryable());
}

fn taken_one(decoder: &mut FrameDecoder) -> Option<Vec<u8>> {
    decoder.next_message().unwrap().map(Vec::from)
}

#[test]
fn compressed_and_cut_messages_are_refused() {
    let mut decoder = FrameDecoder::new(100);
    decoder.push(&[1, 0, 0, 0, 0]);
    let error = decoder.next_message().unwrap_err();
    assert_eq!(grpc_status(&error), GrpcStatus::Unimplemented);

    let mut decoder = FrameDecoder::new(100);
    decoder.push(b"<html>");
    assert_eq!(
        decoder.next_message().unwrap_err().kind,
        ErrorKind::InvalidRequest
    );

    let mut decoder = FrameDecoder::new(100);
    decoder.push(&encode(b"abc")[..6]);
    assert_eq!(decoder.next_message().unwrap(), None);
    assert_eq!(
        decoder.finish().unwrap_err().kind,
        ErrorKind::InvalidRequest
    );
}

#[test]
fn escapes_are_those_of_grpc() {
    assert_eq!(encode_message("50% über\n"), "50%25 %C3%BCber%0A");
    assert_eq!(decode_message("100%"), "100%");
    assert_eq!(decode_message("%zz%C3"), "%zz\u{fffd}");
}

#[test]
fn timeouts_have_six_units() {
    for (text, expected) in [
        ("10S", Duration::from_secs(10)),
        ("2H", Duration::from_secs(7200)),
        ("3M", Duration::from_secs(180)),
        ("250m", Duration::from_millis(250)),
        ("7u", Duration::from_micros(7)),
        ("00000001n", Duration::from_nanos(1)),
        ("0S", Duration::ZERO),
    ] {
        assert_eq!(parse_timeout(text), Some(expected), "{text}");
    }
    for bad in [
        "",
        "S",
        "10",
        "10s",
        "-1S",
        "+1S",
        "1.5S",
        " 1S",
        "123456789S",
        "1ü",
    ] {
        assert_eq!(parse_timeout(bad), None, "{bad}");
    }
    assert_eq!(format_timeout(Duration::from_secs(30)), "30000000u");
    assert_eq!(format_timeout(Duration::ZERO), "0n");
}
