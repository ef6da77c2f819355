//! See `nuncio_fuzz::timestamp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::timestamp(data));
