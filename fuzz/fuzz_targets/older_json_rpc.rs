//! See `nuncio_fuzz::older_json_rpc`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::older_json_rpc(data));
