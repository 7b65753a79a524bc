//! Writes receipts: what each call costs the account that pays for it.
//!
//! Reads the proxy's journal as a consumer. Stores each call, its receipt and the new cursor in one transaction, and
//! acknowledges them to the proxy afterwards. Does not decide what a call costs upstream, and never changes a receipt.
//!
//! Start reading at [`JournalConsumer`].
//!
//! Invariants: each call that was sent upstream has one receipt, whatever is killed
//! (`test:each_sent_call_has_one_receipt`). A call that used tokens is free only if its model is listed as free.

mod consumer;
mod pricing;

pub use self::consumer::JournalConsumer;
