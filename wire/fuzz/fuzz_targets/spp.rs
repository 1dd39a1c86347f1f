//! Law: a header that was read writes back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use voicecluster_wire::spp;

fuzz_target!(|data: &[u8]| {
    if let Ok(header) = spp::decode(data) {
        let mut written = [0; spp::LEN];
        spp::encode(&mut written, header.client, header.proxy);
        assert_eq!(&written[..], &data[..spp::LEN]);
    }
});
