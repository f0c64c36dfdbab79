//! The processes of the groups of a collective.

use super::process::Process;
use crate::graph::Groups;
use std::collections::BTreeSet;

/// Returns the groups that the program lists, each with its processes. Without lists, all processes of the run, which are
/// `all`, are one group.
pub(super) fn processes(groups: &Groups, all: &[Process]) -> Vec<(Vec<usize>, Vec<Process>)> {
    let replicas: BTreeSet<usize> = all.iter().map(|process| process.replica).collect();
    let partitions: BTreeSet<usize> = all.iter().map(|process| process.partition).collect();
    let listed = |lists: &[Vec<usize>], all: &BTreeSet<usize>| {
        if lists.is_empty() { vec![all.iter().copied().collect()] } else { lists.to_vec() }
    };
    let mut found = Vec::new();
    let mut add = |lists: Vec<Vec<usize>>, processes: &dyn Fn(&[usize]) -> Vec<Process>| {
        found.extend(lists.into_iter().map(|list| {
            let processes = processes(&list);
            (list, processes)
        }));
    };
    match groups {
        Groups::CrossReplica(lists) => {
            for &partition in &partitions {
                let process = |&replica: &usize| Process { replica, partition };
                add(listed(lists, &replicas), &|list| list.iter().map(process).collect());
            }
        }
        Groups::CrossPartition(lists) => {
            for &replica in &replicas {
                let process = |&partition: &usize| Process { replica, partition };
                add(listed(lists, &partitions), &|list| list.iter().map(process).collect());
            }
        }
        Groups::CrossReplicaAndPartition(lists) => add(listed(lists, &replicas), &|list| {
            let of_partition =
                |&partition: &usize| list.iter().map(move |&replica| Process { replica, partition });
            partitions.iter().flat_map(of_partition).collect()
        }),
        Groups::Flattened(lists) if lists.is_empty() => {
            add(vec![vec![]], &|_| all.to_vec());
        }
        Groups::Flattened(lists) => {
            let count = partitions.last().map_or(1, |last| last + 1);
            let process = |id: &usize| Process { replica: id / count, partition: id % count };
            add(lists.clone(), &|list| list.iter().map(process).collect());
        }
    }
    found
}
