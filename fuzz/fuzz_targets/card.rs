//! See `nuncio_fuzz::card`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::card(data));
