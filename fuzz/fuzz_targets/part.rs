//! See `nuncio_fuzz::part`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::part(data));
