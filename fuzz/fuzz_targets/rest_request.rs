//! See `nuncio_fuzz::rest_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::rest_request(data));
