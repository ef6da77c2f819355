//! See `nuncio_fuzz::json_rpc_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nuncio_fuzz::json_rpc_request(data));
