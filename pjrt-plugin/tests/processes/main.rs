//! A plugin in processes that are forked, or have little memory: the dummy client of the other tests, in separate processes.
//!
//! The tests do not use the test harness, whose threads a forked child would not have either. Every child has a time limit.

#[path = "../c_api/dummy.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod dummy;
#[path = "../c_api/dummy_extensions.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod dummy_extensions;
#[path = "../c_api/host.rs"]
#[allow(dead_code, unused_macros, unused_imports, reason = "other tests use the rest")]
mod host;

#[cfg(unix)]
mod child;
#[cfg(unix)]
mod forks;
#[cfg(unix)]
mod memory;

#[cfg(unix)]
fn main() {
    // These start from a process that has not used the plugin.
    child::test("a_child_forked_before_the_plugin_is_used_has_a_client", forks::before_the_first_client);
    child::test("what_there_is_no_memory_for_is_an_error", memory::everything_that_copies_says_so);
    // From here on this process has a client.
    let parent = forks::Parent::new();
    child::test("work_is_refused_in_a_forked_child", || parent.work_is_refused());
    child::test("nothing_is_waited_for_in_a_forked_child", || parent.nothing_is_waited_for());
    child::test("a_forked_child_has_no_client_of_its_own", forks::Parent::no_second_client);
    child::test("getters_and_destruction_succeed_in_a_forked_child", || parent.getters_and_destruction());
    child::test("a_child_of_a_forked_child_is_one_too", || parent.forked_again());
    child::test("a_forked_child_ends_as_others_do", || std::process::exit(0));
    parent.goes_on();
}

#[cfg(not(unix))]
fn main() {}
