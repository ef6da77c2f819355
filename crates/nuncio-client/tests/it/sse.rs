//! The reader of event streams: BR-022, BR-023, BR-024, BR-025, BR-167, SSE-02.

use nuncio_client::sse::{Leftover, SseDecoder, SseEvent};
use proptest::prelude::{
    ProptestConfig, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest,
};

fn read(bytes: &[u8]) -> (Vec<SseEvent>, Leftover) {
    read_cut(bytes, &[])
}

/// Reads with the bytes cut at the given places.
fn read_cut(bytes: &[u8], cuts: &[usize]) -> (Vec<SseEvent>, Leftover) {
    let mut decoder = SseDecoder::default();
    let mut events = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        events.extend(decoder.push(&bytes[start..end]).unwrap());
        start = end;
    }
    (events, decoder.finish())
}

fn data(text: &str) -> Vec<String> {
    let (events, _) = read(text.as_bytes());
    events.into_iter().map(|event| event.data).collect()
}

const RECORDED: &str = concat!(
    "\u{feff}: ping - 2026-01-01 00:00:00+00:00\r\n\r\n",
    "retry: 3000\nid: 1\nevent: message\ndata: {\"task\":{\"id\":\"t\"}}\n\n",
    ":\n\n",
    "data:{\"text\":\"漢字かな交じり文 — 🦀👩‍🚀 é\"}\r\n\r\n",
    "id\ndata: {\"a\":\rdata:  [1,\rdata: 2]}\r\r",
    "event: error\ndata: {\"error\":{\"code\":-32603}}\n\n",
    "data\n\n",
    "data: last\r\n\n",
    "data: never finished",
);

#[test]
fn br_022_keep_alives_are_nothing() {
    for quiet in [
        ": ping\n\n",
        ":\n",
        "data:\n\n",
        "data: \n\n",
        "data\n\n",
        "id: 7\n\n",
        "event: ping\n\n",
        "retry: 10\n\n",
        "\n\n\n",
        "\r\r\r\n",
        "event: ping\ndata:\n\n",
    ] {
        let (events, leftover) = read(quiet.as_bytes());
        assert_eq!(events, [], "{quiet:?}");
        assert_eq!(leftover, Leftover::default(), "{quiet:?}");
        let mut mixed = quiet.to_owned();
        mixed.push_str("\ndata: x\n\n");
        assert_eq!(data(&mixed), ["x"], "{quiet:?}");
    }
}

#[test]
fn br_023_several_data_lines_are_one_event() {
    let text = "event: message\nid: 5\ndata: {\ndata: \"a\": 1\nretry: 20\ndata: }\n\n";
    let (events, _) = read(text.as_bytes());
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].data, "{\n\"a\": 1\n}");
    assert_eq!(events[0].id.as_deref(), Some("5"));
    assert_eq!(events[0].event, "message");
    assert_eq!(events[0].retry.unwrap().as_millis(), 20);
}

#[test]
fn br_024_every_line_ending_gives_the_same_events() {
    let lf = "data: one\ndata: two\n\n: c\n\nid: 1\ndata: three\n\n";
    let expected = read(lf.as_bytes());
    assert_eq!(expected.0.len(), 2);
    for ending in ["\r\n", "\r"] {
        let text = lf.replace('\n', ending);
        for cut in 0..=text.len() {
            assert_eq!(
                read_cut(text.as_bytes(), &[cut]),
                expected,
                "{ending:?} cut at {cut}"
            );
        }
    }
}

#[test]
fn br_025_a_cut_anywhere_changes_nothing() {
    let bytes = RECORDED.as_bytes();
    let expected = read(bytes);
    assert_eq!(expected.0.len(), 5);
    assert_eq!(expected.0[0].id.as_deref(), Some("1"));
    assert!(expected.0[1].data.contains("漢字") && expected.0[1].data.contains("👩‍🚀"));
    assert_eq!(expected.0[2].data, "{\"a\":\n [1,\n2]}");
    assert_eq!(expected.1.data, "never finished");
    for first in 0..=bytes.len() {
        assert_eq!(read_cut(bytes, &[first]), expected, "cut at {first}");
        let second = (first + 1).min(bytes.len());
        assert_eq!(
            read_cut(bytes, &[first, second]),
            expected,
            "cut around {first}"
        );
    }
    let every: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(read_cut(bytes, &every), expected);
}

#[test]
fn br_025_an_event_beyond_the_limit_is_an_error_and_not_a_buffer() {
    for text in [
        "data: ".to_owned() + &"x".repeat(200),
        "data: xxxxxxxxxxxxxxxxxxxx\n".repeat(10),
        ":".to_owned() + &"x".repeat(200),
    ] {
        let mut decoder = SseDecoder::new(100);
        let result = text
            .as_bytes()
            .chunks(7)
            .try_for_each(|chunk| decoder.push(chunk).map(|_| ()));
        assert_eq!(result.unwrap_err().max_bytes, 100, "{}", &text[..20]);
    }
    let mut decoder = SseDecoder::new(100);
    let text = "data: xxxxxxxxxxxxxxxxxxxx\n\n".repeat(100);
    assert_eq!(decoder.push(text.as_bytes()).unwrap().len(), 100);
}

/// SSE-02: what is no field is kept aside, in case the whole body is an error.
#[test]
fn a_body_that_is_no_event_stream_is_left_over() {
    let body = "{\"jsonrpc\":\"2.0\",\n \"error\":{}}";
    let (events, leftover) = read(body.as_bytes());
    assert_eq!(events, []);
    assert_eq!(leftover.stray.trim(), body);
}

fn piece() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        ".{0,12}",
        "data: ?.{0,12}".prop_map(|line| line),
        prop::sample::select(vec![
            "data",
            "data:",
            ":",
            "id: 1",
            "event: x",
            "retry: 1",
            "漢: 🦀"
        ])
        .prop_map(str::to_owned),
    ];
    let ending = prop::sample::select(vec!["\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "\r\r"]);
    (line, ending).prop_map(|(line, ending)| line + ending)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// BR-025: every way of cutting any stream gives the same events.
    #[test]
    fn every_split_gives_equal_events(
        pieces in prop::collection::vec(piece(), 0..20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = pieces.concat();
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        prop_assert_eq!(read_cut(bytes, &cuts), read(bytes));
    }

    /// Bytes that are no text at all do not upset it.
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut decoder = SseDecoder::new(100);
        let _ = decoder.push(&bytes);
        let _ = decoder.finish();
    }
}
