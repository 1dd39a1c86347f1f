//! Law: how a stream is cut into pieces does not matter, and what comes out, put back, is the stream without its null
//! packets. The first byte is the size of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use voicecluster_wire::framing::{Deframer, HEADER_LEN, header};

const MAX_FRAME: u16 = 64;

fuzz_target!(|data: &[u8]| {
    let Some((&piece, stream)) = data.split_first() else {
        return;
    };
    let whole = read(stream, stream.len().max(1));
    let pieces = read(stream, usize::from(piece).max(1));
    assert_eq!(whole, pieces);
    let (frames, pending, failed) = whole;
    let framed: usize = frames.iter().map(|frame| HEADER_LEN + frame.len()).sum();
    assert!(framed + pending <= stream.len());
    assert!(pending < HEADER_LEN + usize::from(MAX_FRAME));
    for frame in &frames {
        assert_eq!(header(frame), Ok((frame.len() as u16).to_be_bytes()));
    }
    if !failed && !stream.windows(HEADER_LEN).any(|window| window == [0, 0]) {
        assert_eq!(framed + pending, stream.len());
    }
});

fn read(stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, usize, bool) {
    let mut deframer = Deframer::new(MAX_FRAME);
    let mut frames = Vec::new();
    let fed = stream
        .chunks(piece)
        .try_for_each(|data| deframer.feed(data, |frame| frames.push(frame.to_vec())));
    (frames, deframer.pending(), fed.is_err())
}
