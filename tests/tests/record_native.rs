//! The record's vectors against the codec.

use std::collections::BTreeSet;

use leasehold_core::record::{DoesNotFit, MAX_LEN, decode, decode_named, encode};
use leasehold_tests::record_vectors;

#[test]
fn every_record_has_exactly_its_bytes_both_ways() {
    for written in record_vectors::load().records {
        let (title, record) = (&written.fields.title, written.fields.record());
        assert_eq!(decode(&written.bytes), Ok(record), "{title}");
        let mut buffer = [0; MAX_LEN];
        let bytes = encode(&record, &mut buffer).unwrap();
        assert_eq!(bytes, written.bytes, "{title}: {}", String::from_utf8_lossy(bytes));
        assert_eq!(decode_named(record.name.as_str(), bytes), Ok(record), "{title}");
    }
}

#[test]
fn what_no_decoder_reads_no_encoder_writes() {
    for fields in record_vectors::load().unwritable {
        let written = encode(&fields.record(), &mut [0; MAX_LEN]).map(<[u8]>::to_vec);
        assert_eq!(written, Err(DoesNotFit), "{}", fields.title);
    }
}

#[test]
fn whatever_no_encoder_writes_is_refused_where_it_differs() {
    for refused in record_vectors::load().refused {
        let bytes = String::from_utf8_lossy(&refused.bytes);
        let found = match &refused.under {
            Some(name) => decode_named(name, &refused.bytes),
            None => decode(&refused.bytes),
        };
        assert_eq!(found, Err(refused.fault), "{}: {bytes}", refused.name);
    }
}

#[test]
fn every_vector_has_a_name_of_its_own() {
    let vectors = record_vectors::load();
    let written = vectors.records.iter().map(|written| &written.fields.title);
    let refused = vectors.refused.iter().map(|refused| &refused.name);
    let names: Vec<_> = written.chain(refused).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}
