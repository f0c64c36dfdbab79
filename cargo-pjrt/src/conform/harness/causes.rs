//! Sentences about faults of plugins that many checks notice. A report groups failures by them.

/// The sentence about a plugin that does not call the callbacks of events that are ready already, which many checks notice.
pub(crate) const MISSED_CALLBACKS: &str = "PJRT_Event_OnReady does not call the callback of an event that is ready already: the \
                                           plugin probably keeps it for a completion that does not come again";

/// The sentence about a plugin whose functions answer with what is true of an earlier object, which many checks notice.
pub(crate) const STALE: &str = "the plugin probably keeps what it knows of an object by its address, which was that of an object \
                                that the host has destroyed";

/// The cause of wrong bytes of an array that the host holds, which many checks notice.
pub(crate) const FREED_WHILE_HELD: &str = "PJRT_Buffer_Delete probably frees the memory although \
                                           PJRT_Buffer_IncreaseExternalReferenceCount was called more often than \
                                           PJRT_Buffer_DecreaseExternalReferenceCount";

/// The sentence about events that have the error of an earlier call, which many checks notice.
pub(crate) const KEPT_ERROR: &str = "the plugin probably keeps the error of a call for a later event";

/// The sentence about outputs that keep their memory after they were destroyed, which many checks notice.
pub(crate) const LEAKED_OUTPUT: &str = "PJRT_Buffer_Destroy of an output of PJRT_LoadedExecutable_Execute probably does not free \
                                        its memory";

/// The words about an execution that writes to an array of the host, which many checks notice.
pub(crate) const CHANGED_ARGUMENT: &str =
    "the execution changed an argument that the program does not donate";

/// The words about the number of bytes that a readback needs, on which most readbacks depend.
pub(crate) const READBACK_SIZE: &str = "the size of a readback";

/// The words about ids that do not tell devices from each other, which many checks notice.
pub(crate) const SAME_ID: &str = "two devices have the id";

/// The words about outputs in the order of another list, which many checks notice.
pub(crate) const OUT_OF_ORDER: &str = "the outputs are out of order";

/// The words about the event of an execution that is complete at once, which many checks notice.
pub(crate) const COMPLETE_FROM_THE_START: &str =
    "is ready before the host provided an argument of the execution";

/// The words about an execution with an argument of an earlier one, which many checks notice.
pub(crate) const EARLIER_ARGUMENT: &str = "that of the array which the host passed in run";

/// The words about a readback that is complete before its bytes are there, which many checks notice.
pub(crate) const BYTES_COME_LATER: &str =
    "it was complete before it had written all bytes: some changed later";

/// The words about a plugin that refers to an array or a struct of its caller after the call.
pub(crate) const KEPT_POINTER: &str = "is what the host writes over the arrays that it passed, after the call: the plugin keeps a \
                                       pointer to such an array, and must copy its elements";

/// The words of a message about objects that are wrong without the failed call after which the check looked at them.
pub(crate) const NO_FAILURE: &str = "No call failed before";

/// The words about a plugin that returns a program which it has compiled for another text, which many checks notice.
pub(crate) const EARLIER_PROGRAM: &str = "returns an earlier program";

/// The words about a plugin whose errors have all the same code, which many checks notice.
pub(crate) const ONE_CODE: &str = "for every error, whatever the code with which it was created";

/// The words about an execution that has the results of an argument which is in error, which many checks notice.
pub(crate) const NOT_SPREAD: &str =
    "the plugin probably runs the program with whatever is in the memory of an argument that is in error";

/// The words about a plugin that reads memory which the host may overwrite, which many checks notice.
pub(crate) const HOST_MEMORY: &str = "still reads the host's memory";

/// The words about the simplest transfer with wrong elements each time, which all checks that read arrays notice.
pub(crate) const WRONG_TRANSFER: &str = "Each of several such transfers is wrong, and stays wrong: the transfer itself is \
                                         probably at fault, before any order of operations";

/// The words about an operation that begins before an array has its data, which many checks notice.
pub(crate) const NOT_WAITED: &str = "the plugin probably does not wait for the data of the array";

/// The words about the elements of an array on another device, which many checks notice.
pub(crate) const OF_ANOTHER_DEVICE: &str = "are those of the array on another device";

/// The words about a program that ends while it runs, which many checks notice.
pub(crate) const FREED_PROGRAM: &str =
    "the plugin probably frees what a program needs, or its outputs, while an execution of it waits or runs";

/// The words about a program that computes something else from some run on, which many checks notice.
pub(crate) const CHANGES_WITH_RUNS: &str =
    "of one program with the same arguments has other results than those before";

/// The words about a plugin that keeps the messages of all errors in one place, which many checks notice.
pub(crate) const ONE_MESSAGE: &str = "keeps all messages in one buffer";

/// The words of a message about operations whose results are wrong only if the host does not wait between them.
pub(crate) const HAZARD: &str = "and none if the host waits for each operation before it calls the next";

/// The words of a message about operations that are also wrong one by one, about which other checks say more.
pub(crate) const NO_HAZARD: &str =
    "also if the host waits for each operation before it calls the next: it is no matter of their order";

/// The words about memory that is freed while a queue uses it, which several checks notice.
pub(crate) const FREED_IN_USE: &str =
    "frees the memory of an array although an operation in another queue still";

/// The sentence about callbacks that receive another error than the other observers of the event.
pub(crate) const CHANGED_BY_CALLBACK: &str = "the plugin probably makes a new error for the callback of PJRT_Event_OnReady, without the code \
                                              or the message of the event's";

/// The sentence about the ready events of arrays in error.
pub(crate) const NOT_IN_READY_EVENT: &str =
    "PJRT_Buffer_ReadyEvent probably returns an event that does not have the error of its array";

/// The sentence about an object that ends with another reference to it, after which everything may happen.
pub(crate) const ENDS_WITH_ANOTHER: &str = "the plugin probably returned one object twice without counting its owners, and frees it for the \
                                            first of them. Each object that a function returns is destroyed by its own owner";

/// The words about an array that a program reads only for one of its parameters, which many checks notice.
pub(crate) const SAME_ARRAY_TWICE: &str = "an execution with one array as both arguments";

/// The sentence about an output that changes with a later run, which many checks notice.
pub(crate) const OVERWRITTEN_OUTPUT: &str = "a later execution probably writes its output into the memory of this one: each execution \
                                             creates outputs of its own";

/// The words about a default memory of another device, which many checks notice.
pub(crate) const WRONG_DEFAULT: &str = "is not among the device's memories";

/// The sentence about a plugin that calls callbacks only of events without an error.
pub(crate) const NO_CALLBACK_OF_FAILED: &str =
    "PJRT_Event_OnReady probably calls the callbacks only of events that complete without an error";

/// The words about what the host passed to a call and the plugin uses later, for which a check has a control.
pub(crate) const AFTER_THE_CALL: &str =
    "after the call in which the host passed it, when the host has overwritten it";

/// The words about an event for which whoever waits hangs.
pub(crate) const NEVER_COMPLETE: &str = "is never complete, so that whoever waits for it hangs";

/// The sentence about programs that compute wrong numbers on a device and not on another one, which many checks notice.
pub(crate) const RIGHT_ON_ANOTHER: &str = "another device returns the right sum: the plugin probably runs the programs of every \
                                           device on one of them, or puts their outputs into its memory";

/// The sentence about a crash of a function that does not respect the size of its caller's struct.
pub(crate) const PAST_THE_END: &str = "the plugin accessed memory past the end of its caller's struct, or through an invalid \
                                       pointer in it";

/// The words before the calls in which a process ended.
pub(crate) const DURING: &str = " during ";
