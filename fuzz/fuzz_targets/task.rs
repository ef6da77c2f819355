//! See `nuncio_fuzz::task`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::task(data));
