//! What every backend does alike: each case takes an empty store.

pub(crate) mod deliveries;
pub(crate) mod leases;
pub(crate) mod listing;
pub(crate) mod nodes;
pub(crate) mod owners;
pub(crate) mod push;
pub(crate) mod races;
pub(crate) mod replicas;
pub(crate) mod sessions;
pub(crate) mod upkeep;
pub(crate) mod writing;

use std::sync::Arc;

use nuncio_store::Store;

pub(crate) type Shared = Arc<dyn Store>;

/// Runs every case on a backend: `$open` gives an empty store and what must outlive it.
macro_rules! contract {
    ($open:path) => {
        contract!(@ $open;
            writing::a_created_task_is_loaded_as_it_was_written,
            writing::broken_input_is_refused,
            writing::a_key_is_used_once,
            writing::a_key_belongs_to_its_scope,
            writing::a_key_of_an_append_is_found,
            writing::an_append_needs_the_newest_position,
            writing::an_append_needs_its_epoch,
            writing::a_terminal_task_is_frozen,
            writing::checks_come_in_order,
            writing::nothing_of_another_scope_is_seen,
            writing::events_after_a_position,
            writing::checkpoint_and_turn_stay_until_changed,
            writing::what_accompanied_messages_is_kept,
            writing::status_time_never_goes_back,
            writing::any_text_is_an_id,
            writing::a_closed_store_says_so,
            leases::a_live_lease_is_not_claimed,
            leases::an_expired_run_is_claimed_once,
            leases::nobody_claims_its_own_runs,
            leases::runs_of_the_agents_asked_for_are_claimed,
            leases::a_sole_owner_claims_what_others_hold,
            leases::a_late_renewal_brings_nothing_back,
            leases::what_does_not_run_is_not_claimed,
            leases::an_old_run_is_fenced,
            leases::renewing_prolongs_all_of_an_owner,
            leases::a_process_can_ask_what_it_holds,
            leases::releasing_gives_all_up,
            replicas::heads_tell_where_tasks_stand,
            listing::newest_first_then_by_id,
            listing::pages_meet_without_gap,
            listing::filters_combine,
            listing::totals_follow_every_change,
            listing::paging_is_stable_under_updates,
            listing::what_waits_in_a_conversation,
            push::webhooks_are_kept_by_id,
            push::a_webhook_comes_with_its_task,
            push::a_webhook_comes_with_a_message,
            push::a_loaded_task_tells_whether_it_has_webhooks,
            push::a_cursor_never_goes_back,
            push::the_backlog_names_what_is_behind,
            deliveries::a_state_is_kept_as_it_was_noted,
            deliveries::a_replaced_webhook_begins_anew_and_keeps_its_letters,
            deliveries::a_webhook_replaced_with_a_message_begins_anew,
            deliveries::a_deleted_webhook_leaves_nothing,
            deliveries::webhooks_of_any_id_are_told_apart,
            deliveries::disabled_webhooks_are_not_behind,
            deliveries::dead_letters_are_delivered_again_on_demand,
            deliveries::webhooks_are_listed_by_pages,
            deliveries::one_at_a_time_has_a_webhook,
            deliveries::calls_are_logged_within_bounds,
            races::one_of_two_appends_wins,
            races::one_of_many_creates_is_new,
            races::cancel_against_completion,
            sessions::entries_are_read_as_they_were_written,
            sessions::any_text_is_an_entry_and_a_name,
            sessions::an_entry_needs_the_last_position,
            sessions::one_of_many_entries_is_the_next,
            sessions::state_is_shared_by_its_scope,
            sessions::a_summary_takes_the_place_of_what_it_tells,
            sessions::nothing_of_another_session_is_seen,
            sessions::a_deleted_session_begins_anew,
            sessions::texts_above_their_limit_are_refused,
            sessions::states_beyond_their_number_are_refused,
            sessions::old_sessions_go_the_oldest_first,
            nodes::nodes_stay_where_they_were_first_written,
            nodes::nodes_belong_to_a_task_of_their_scope,
            nodes::a_task_keeps_its_first_nodes,
            nodes::nodes_go_with_their_task,
            nodes::large_nodes_are_refused,
            owners::what_is_taken_is_one_callers,
            owners::all_or_none_are_taken,
            owners::tasks_and_contexts_of_one_name_are_told_apart,
            owners::an_id_of_an_agent_is_one_callers_in_all_workspaces,
            owners::any_text_is_an_id_but_none_and_a_long_one,
            owners::what_is_not_taken_again_is_forgotten,
            owners::one_of_many_takes_it,
            upkeep::ended_tasks_expire_with_all_that_is_theirs,
            upkeep::a_sweep_goes_on_where_it_stopped,
            upkeep::a_compacted_log_leaves_the_task,
            upkeep::a_log_that_a_webhook_needs_is_kept,
            upkeep::reclaiming_comes_to_an_end,
            upkeep::tasks_move_whole,
            upkeep::importing_again_changes_nothing,
            upkeep::what_does_not_fit_is_not_imported,
        );
    };
    (@ $open:path; $($module:ident::$case:ident,)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $case() {
            // Without it there is nothing to run on; whoever leaves that out has asked for it.
            let Some((store, _kept)) = $open().await else {
                return;
            };
            crate::contract::$module::$case(&store).await;
            store.close().await.unwrap();
        }
    )+};
}

/// Runs the cases of several processes on a backend that they can share: `$open` gives two stores
/// of one content, and what must outlive them.
macro_rules! contract_of_replicas {
    ($open:path) => {
        contract_of_replicas!(@ $open;
            each_hears_of_the_others_appends,
            a_claim_is_heard_of,
            a_webhook_is_heard_of,
            a_created_task_is_seen_at_once,
            a_key_is_new_on_one_of_two,
            one_of_two_replicas_appends,
            each_run_is_claimed_by_one,
            one_of_two_answers_begins_a_run,
            each_webhook_is_claimed_by_one,
            a_lost_claim_writes_nothing_more,
            many_hands_at_one_webhook,
            one_of_two_replicas_has_the_next_entry,
            many_hands_at_the_state_of_one_caller,
            many_hands_at_what_is_to_be_taken,
            closing_one_leaves_the_other_open,
        );
    };
    (@ $open:path; $($case:ident,)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $case() {
            let Some((stores, _kept)) = $open().await else {
                return;
            };
            crate::contract::replicas::$case(&stores).await;
            for store in stores {
                store.close().await.unwrap();
            }
        }
    )+};
}

pub(crate) use contract;
pub(crate) use contract_of_replicas;
