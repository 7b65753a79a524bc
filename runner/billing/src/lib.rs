//! Writes receipts: what each call costs the account that pays for it.
//!
//! Reads the proxy's journal as a consumer. Stores each call, its receipt and the new cursor in one transaction, and
//! acknowledges them to the proxy afterwards. Compares receipts with the upstream's ledger, and corrects them by
//! adjusting receipts. Does not decide what a call costs upstream, and never changes a receipt.
//!
//! Tells the proxy which accounts are below their floor.
//!
//! Start reading at [`JournalConsumer`], then [`Reconciler`] and [`FloorEnforcer`].
//!
//! Invariants: each call that was sent upstream has one receipt, whatever is killed
//! (`test:each_sent_call_has_one_receipt`). A floor holds, whatever is killed (`test:a_floor_holds_whatever_is_killed`). A
//! call that used tokens is free only if its model is listed as free. Only what the ledger says corrects a receipt
//! (`test:a_callback_is_only_a_hint`). A ledger cannot hold up billing, whatever it holds
//! (`test:a_bad_row_stops_no_pass`, `test:an_endless_ledger_stops_no_pass`).

mod consumer;
mod floors;
mod pricing;
mod reconcile;

pub use self::{
    consumer::JournalConsumer,
    floors::FloorEnforcer,
    reconcile::{
        PassBound, ReconcileError, ReconcileFrom, Reconciler, Reconciliation, ReconciliationTask,
        UnreadablePart,
    },
};
