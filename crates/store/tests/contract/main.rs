//! What every body of the store must do, asked of each body there is.
//!
//! The questions are functions over a [`store::Store`] and know nothing of what is behind
//! it. A new body joins by one more line in [`contract`].

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod acted;
mod asked;
mod audited;
mod counted;
mod deployed;
mod disrupted;
mod documents;
mod fixture;
mod followed;
mod glimpsed;
mod habitat;
mod lists;
mod observed;
mod owned;
mod paced;
mod planned;
mod posted;
mod reasons;
mod recalled;
mod sealed;
mod slept;
mod spoken;
mod taken;
mod told;
mod wished;
mod worked;

/// Asks each function of each body.
macro_rules! contract {
    ($($room:ident: $($question:ident),+;)+) => {
        mod in_memory {
            $($(
                #[tokio::test]
                async fn $question() {
                    let store = store::Store::in_memory().unwrap();
                    crate::$room::$question(&store).await;
                }
            )+)+
        }

        mod on_postgres {
            $($(
                #[tokio::test]
                async fn $question() {
                    let name = concat!("contract::on_postgres::", stringify!($question));
                    let Some(server) = lab::postgres::shared_or_skip(name) else { return };
                    let store = store::Store::connect(&server.create_database().unwrap()).unwrap();
                    crate::$room::$question(&store).await;
                }
            )+)+
        }

        mod on_disk {
            $($(
                #[tokio::test]
                async fn $question() {
                    let directory = tempfile::tempdir().unwrap();
                    let store = store::Store::open(directory.path()).unwrap();
                    crate::$room::$question(&store).await;
                }
            )+)+
        }
    };
}

contract! {
    followed:
        what_is_told_twice_or_late_changes_nothing,
        what_was_made_of_an_earlier_state_is_not_said_of_a_later,
        requests_of_one_project_keep_none_of_another_behind,
        a_request_waits_while_its_environment_is_busy_or_rests,
        an_environment_of_a_fork_has_no_secrets,
        what_is_done_for_a_request_is_written_down_with_it_or_not_done,
        requests_of_which_nothing_is_heard_are_swept,
        a_service_is_told_how_the_environment_of_a_commit_is,
        what_was_called_off_was_not_deployed;
    documents:
        a_submission_becomes_a_generation_and_clusters,
        the_same_text_twice_is_one_generation,
        a_submission_for_another_generation_is_refused,
        old_generations_stay_readable,
        a_cluster_has_one_manifest,
        a_change_that_removes_too_much_needs_consent,
        machines_that_were_never_made_need_no_consent,
        machines_that_were_seen_to_be_absent_need_no_consent,
        small_steps_that_are_not_taken_yet_are_one_large_one,
        a_cluster_is_not_stranded_unasked,
        a_manifest_is_judged_with_what_was_wished,
        machines_that_may_have_been_made_need_consent,
        a_cluster_that_is_no_longer_declared_needs_consent,
        what_cannot_change_is_refused_whole,
        a_deleted_manifest_leaves_tombstones_until_all_is_gone,
        a_name_used_again_is_another_cluster,
        a_key_repeats_the_answer,
        a_preview_writes_nothing,
        a_twin_goes_its_own_way,
        a_twin_knows_what_others_hold;
    planned:
        a_plan_becomes_tasks_once,
        a_plan_for_an_older_generation_is_stale,
        a_plan_that_tells_nothing_new_writes_nothing,
        what_was_seen_earlier_is_not_told_later,
        a_task_that_a_worker_took_cannot_be_withdrawn,
        the_ledger_has_one_row_per_cluster,
        an_address_belongs_to_one_cluster,
        who_serves_stays_while_others_keep_the_address_of_the_next_one,
        a_machine_has_one_open_task,
        a_cluster_that_is_gone_is_forgotten;
    worked:
        clusters_with_less_to_do_come_first,
        no_cluster_gets_more_than_its_share,
        a_cluster_at_rest_keeps_nobody_waiting,
        no_task_is_claimed_twice,
        an_attempt_that_failed_waits_until_it_is_due,
        a_stuck_task_waits_for_a_wish,
        a_worker_that_lost_its_lease_cannot_record,
        a_heartbeat_extends_the_lease,
        at_a_new_start_every_lease_is_void,
        a_task_that_is_given_back_is_due_at_once,
        a_lost_attempt_is_remembered_until_somebody_looked,
        a_long_log_keeps_its_head_and_its_tail,
        what_is_due_next_is_known;
    observed:
        what_is_seen_late_changes_nothing,
        the_same_fact_again_is_no_change,
        since_when_a_machine_does_not_serve_is_told_by_its_node_where_it_is_one,
        a_machine_is_shown_as_it_was_last_seen,
        what_changed_about_a_machine_is_kept_newest_first,
        a_node_that_outlives_its_machine_is_known_and_not_ready,
        what_ends_well_and_changes_nothing_is_told_to_the_planner,
        what_is_past_its_time_is_swept,
        counts_tell_how_much_there_is;
    reasons:
        history_says_who_why_and_what,
        what_nobody_asked_for_says_what_was_seen,
        wishes_are_told_by_names,
        machines_that_keep_data_go_only_when_that_is_said;
    wished:
        a_wish_for_another_size_changes_the_cluster,
        a_newer_size_replaces_the_older_wish,
        a_wish_withdrawn_or_expired_takes_its_size_along,
        a_wish_that_made_much_goes_with_consent_or_at_its_end,
        a_cancelled_task_that_is_done_ends_the_wish,
        a_cancelled_task_that_is_withdrawn_stays_cancelled,
        another_declared_size_ends_the_wish,
        a_wish_that_makes_no_sense_is_refused,
        a_wish_for_more_than_a_cloud_has_addresses_for_is_refused,
        a_wish_may_not_remove_too_much,
        a_machine_is_replaced_by_a_new_one,
        a_snapshot_is_taken_when_wished_and_put_back_when_it_is_kept,
        a_wish_makes_earlier_plans_stale,
        a_pool_that_is_scaled_stays_within_what_is_declared,
        an_edit_that_shrinks_a_pool_that_is_scaled_counts_as_any_other,
        a_machine_is_retired_and_its_pool_is_smaller,
        what_cannot_be_made_is_given_back;
    lists:
        pages_visit_each_row_once_while_others_come,
        lists_filter,
        a_cursor_from_elsewhere_is_refused,
        events_resume_after_an_id,
        subscribers_hear_of_the_newest_event,
        journeys_are_kept;
    owned:
        a_project_is_made_changed_and_removed,
        a_project_that_has_something_stays,
        a_submission_into_an_unknown_project_is_refused,
        a_quota_of_clusters_refuses_the_whole_submission,
        a_limit_below_what_there_is_takes_nothing_away,
        a_quota_of_machines_holds_back_what_is_beyond_it,
        a_unit_of_quota_comes_back_with_its_machine,
        a_full_quota_keeps_nothing_from_leaving;
    spoken:
        a_token_is_found_by_its_digest,
        the_last_use_of_a_token_is_known_to_the_minute,
        a_token_is_revoked_once,
        tokens_are_listed_by_project;
    sealed:
        the_first_key_is_made_once,
        a_key_is_wrapped_again,
        a_value_under_a_key_that_is_not_in_use_is_refused,
        an_output_under_an_old_key_is_sealed_again_and_recorded,
        sealing_again_passes_over_what_has_changed,
        a_key_goes_when_nothing_is_sealed_with_it,
        a_secret_is_shown_by_its_entries,
        secrets_are_listed_and_removed,
        a_secret_is_changed_whole_or_not_at_all,
        whoever_opens_a_secret_is_named;
    audited:
        every_change_leaves_an_entry,
        what_is_refused_leaves_no_gap,
        the_chain_is_listed_newest_first,
        an_exported_chain_is_judged_alike;
    disrupted:
        a_pool_has_a_budget_of_its_own,
        a_group_has_one_budget_across_clusters,
        a_cluster_that_is_removed_gives_its_slot_back,
        nobody_begins_to_wait_for_what_was_given_back,
        nobody_begins_to_wait_for_a_unit_that_is_free,
        nobody_begins_to_wait_for_an_address_that_is_free,
        a_window_that_opens_has_the_cluster_planned,
        a_secret_that_is_missing_is_known_to_the_planner,
        a_secret_of_a_bucket_that_is_missing_is_known_to_the_planner,
        a_stuck_task_goes_on_when_its_secret_is_set;
    paced:
        minutes_are_learnt_from_attempts_that_were_done,
        only_the_newest_paces_are_kept;
    told:
        a_log_goes_on_over_attempts,
        logs_go_before_their_tasks,
        no_log_outlives_its_task,
        events_stay_in_order_for_whoever_follows;
    counted:
        what_waits_is_counted,
        what_is_restored_is_looked_at_first,
        what_changes_nothing_can_be_entered_too;
    deployed:
        a_project_says_how_its_environments_are_made,
        an_environment_comes_with_its_first_action,
        what_may_not_be_done_now_is_refused_and_changes_nothing,
        an_update_brings_its_edits_and_a_new_generation,
        an_update_and_what_is_said_of_it_come_together_or_not_at_all,
        limits_are_kept,
        one_that_is_on_its_way_to_rest_counts_once_when_it_comes_back,
        what_is_deleted_is_gone_at_once_and_its_name_is_free,
        secrets_are_sealed_for_the_environment_or_refused,
        what_never_began_is_called_off_at_once,
        what_is_claimed_and_not_begun_is_called_off_at_once,
        what_may_have_begun_is_ended_by_whoever_is_at_it,
        what_is_called_off_before_its_script_starts_leaves_things_as_they_were,
        what_somebody_called_off_has_not_failed_however_it_ended,
        what_people_say_of_an_environment_is_changed_whole,
        a_project_with_environments_stays,
        one_of_many_begins;
    asked:
        of_two_with_one_key_the_second_hears_what_the_first_was_told,
        what_is_refused_uses_no_key_up_and_what_is_done_does;
    acted:
        an_action_is_claimed_with_all_there_is_to_know,
        what_was_begun_elsewhere_is_left_until_it_must_have_ended,
        nobody_waits_for_a_project_with_much_to_do,
        a_project_with_much_to_do_leaves_places_for_others,
        a_heartbeat_keeps_an_action,
        what_is_printed_is_stored_once_and_in_order,
        much_that_is_printed_keeps_its_head_and_its_tail,
        what_one_stream_lost_costs_the_other_nothing,
        a_script_that_failed_leaves_a_mark,
        an_environment_goes_its_whole_way,
        what_was_not_begun_to_be_removed_rests_on,
        what_runs_and_could_not_be_removed_counts_and_is_looked_at,
        what_nobody_knows_of_is_judged_by_a_look,
        what_is_past_its_time_ends_by_itself,
        what_was_done_is_swept_but_the_last_of_it,
        nothing_is_begun_again_that_was_restored;
    glimpsed:
        whoever_is_due_is_looked_at_by_one,
        of_several_projects_each_has_its_share_of_looks,
        what_was_seen_before_something_began_is_dropped,
        what_people_say_of_one_meanwhile_does_not_keep_looks_away,
        an_environment_becomes_what_is_seen,
        that_something_runs_which_should_rest_is_told_once,
        one_that_nobody_can_look_at_is_told_so,
        a_look_that_sees_nothing_makes_no_news_of_what_was_seen,
        only_the_newest_changes_are_kept,
        environments_are_listed_by_what_people_look_for,
        environments_are_listed_by_their_last_change;
    recalled:
        who_looks_is_told_what_was_deployed,
        nobody_knows_what_was_deployed_elsewhere,
        a_look_that_is_put_off_says_nothing;
    slept:
        what_nobody_uses_is_put_to_sleep,
        who_is_left_out_keeps_nobody_behind_from_sleeping,
        what_the_hours_wake_has_all_of_its_idle_time_again,
        what_sleeps_because_of_the_hour_is_woken_and_kept,
        who_archives_what_sleeps_has_it_stay_where_it_is,
        what_age_asks_for_and_fails_is_not_begun_all_the_time,
        what_could_not_be_woken_is_not_begun_all_the_time,
        who_calls_waking_off_has_it_rest,
        what_is_brought_back_after_its_end_has_one_again,
        the_next_end_is_known_before_it_comes;
    posted:
        what_becomes_of_an_environment_is_told_with_it,
        what_is_refused_tells_nobody,
        scripts_are_told_of_statuses_and_of_nothing_else,
        one_of_a_lane_is_sent_at_a_time_and_in_order,
        whoever_dies_has_it_sent_again_under_the_same_id,
        what_was_given_up_is_sent_again_by_hand,
        messages_that_ended_are_swept,
        an_end_is_told_once_and_another_end_again,
        the_script_before_all_others_leaves_its_end;
    taken:
        what_is_taken_over_is_as_it_was_and_is_looked_at,
        the_same_again_changes_nothing_and_what_broke_off_goes_on,
        names_that_others_have_and_those_that_are_gone_are_left,
        an_old_log_is_kept_from_the_day_it_came;
}
