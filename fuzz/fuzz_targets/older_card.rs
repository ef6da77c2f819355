//! See `nuncio_fuzz::older_card`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::older_card(data));
