//! See `nuncio_fuzz::json_rpc_response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::json_rpc_response(data));
