//! See `nuncio_fuzz::json_check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::json_check(data));
