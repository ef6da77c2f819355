//! See `nuncio_fuzz::rest_response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::rest_response(data));
