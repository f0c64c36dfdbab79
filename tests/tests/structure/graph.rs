//! Directed graphs of files or folders, and their cycles.

use std::collections::{BTreeMap, BTreeSet};

/// For each node, the nodes that it leads to.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the graph of the folders of files.
pub(crate) fn between_folders(files: &Graph) -> Graph {
    let folder =
        |file: &String| file.rsplit_once('/').map_or_else(String::new, |(folder, _)| folder.to_owned());
    let mut graph = Graph::default();
    for (from, targets) in files {
        for to in targets {
            if folder(from) != folder(to) {
                graph.entry(folder(from)).or_default().insert(folder(to));
            }
        }
    }
    graph
}

/// Returns the sets of nodes that lead to each other.
pub(crate) fn cycles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for next in graph.get(node).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|node| (node, reached(node))).collect();
    let mut cycles = BTreeSet::new();
    for (node, targets) in &reached {
        if targets.contains(*node) {
            let cycle: BTreeSet<String> = targets
                .iter()
                .filter(|to| reached.get(to).is_some_and(|back| back.contains(*node)))
                .cloned()
                .collect();
            cycles.insert(cycle);
        }
    }
    cycles.into_iter().collect()
}
