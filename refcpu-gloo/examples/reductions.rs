//! Times methods of an all-reduce of `f32` over processes of this machine: prints a line `METHOD PROCESSES BYTES MICROSECONDS` for
//! each, with the lower quartile of the times of process 0. Other programs on the machine disturb it less than the median.
//!
//! ```console
//! $ REFCPU_GLOO=target/gloo/librefcpu_gloo.so cargo run --release --package refcpu-gloo --example reductions -- 2 4 8
//! ```

use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use refcpu_gloo::{Bytes, Library, Listener, Mesh, Transfer};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Replaces the array of each process with the sum of all.
type Method = fn(&Node<'_>, &mut [u8]) -> Outcome<()>;

/// The sizes of the arrays in bytes.
const SIZES: &[usize] = &[4, 4 << 10, 64 << 10, 1 << 20, 16 << 20];

/// The number of processes that share a machine in the hierarchical method.
const GROUP: usize = 2;

const METHODS: &[(&str, Method)] =
    &[("direct", direct), ("parts", parts), ("ring", ring), ("tree", tree), ("hierarchical", hierarchical)];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [marker, folder, index, count] = arguments.as_slice()
        && marker == "process"
    {
        return process(Path::new(folder), index.parse()?, count.parse()?);
    }
    for count in &arguments {
        let folder = std::env::temp_dir().join(format!("reductions-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let start = |index: usize| {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("process").arg(&folder).arg(index.to_string()).arg(count).spawn()
        };
        let started: Vec<Child> = (0..count.parse()?).map(start).collect::<Result<_, _>>()?;
        let ended: Vec<bool> =
            started.into_iter().map(|mut child| Ok(child.wait()?.success())).collect::<Outcome<_>>()?;
        std::fs::remove_dir_all(&folder)?;
        if ended.contains(&false) {
            return Err(format!("one of {count} processes has failed").into());
        }
    }
    Ok(())
}

/// Runs one of the processes. They exchange their addresses as files in a folder.
fn process(folder: &Path, index: usize, count: usize) -> Outcome<()> {
    let limit = Duration::from_secs(60);
    let listener = Listener::new(Library::find()?, index, count, Some("127.0.0.1"), limit)?;
    for peer in (0..count).filter(|peer| *peer != index) {
        let unfinished = folder.join(format!("{index}-{peer}.unfinished"));
        std::fs::write(&unfinished, listener.address(peer))?;
        std::fs::rename(unfinished, folder.join(format!("{index}-{peer}")))?;
    }
    let begin = Instant::now();
    let mut addresses = vec![Vec::new(); count];
    for (peer, address) in addresses.iter_mut().enumerate().filter(|(peer, _)| *peer != index) {
        let path = folder.join(format!("{peer}-{index}"));
        while !path.exists() {
            if begin.elapsed() > limit {
                return Err(format!("process {peer} has no address").into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        *address = std::fs::read(path)?;
    }
    let mesh = listener.connect(&addresses)?;
    let node = Node { mesh: &mesh, index, count };
    for &size in SIZES {
        for (name, run) in METHODS {
            let time = quartile(&node, size, *run)?;
            if index == 0 {
                println!("{name} {count} {size} {:.1}", time.as_secs_f64() * 1e6);
            }
        }
    }
    direct(&node, &mut [0; 4])?;
    // All processes have finished. The first one that ends breaks the connections of the others.
    let _ = direct(&node, &mut [0; 4]);
    Ok(())
}

/// Runs a method several times, checks its results, and returns the lower quartile of the times.
fn quartile(node: &Node<'_>, size: usize, run: Method) -> Outcome<Duration> {
    let own = (node.index as f32 + 1.0).to_ne_bytes().repeat(size / 4);
    let sum = (1..=node.count).map(|value| value as f32).sum::<f32>().to_ne_bytes().repeat(size / 4);
    let mut times = Vec::new();
    for _ in 0..((64 << 20) / size).clamp(8, 200) {
        let mut data = own.clone();
        direct(node, &mut [0; 4])?;
        let begin = Instant::now();
        run(node, &mut data)?;
        times.push(begin.elapsed());
        if data != sum {
            return Err("the sum is wrong".into());
        }
    }
    times.sort_unstable();
    Ok(times[times.len() / 4])
}

/// A process, and its connections.
struct Node<'a> {
    mesh: &'a Mesh,
    index: usize,
    count: usize,
}

impl Node<'_> {
    fn others(&self) -> impl Iterator<Item = usize> {
        let own = self.index;
        (0..self.count).filter(move |peer| *peer != own)
    }

    /// Sends bytes to one process, and receives as many from another one as `received` has. Either may be absent.
    fn shift(&self, send: Option<(usize, &[u8])>, receive: Option<(usize, &mut [u8])>) -> Outcome<()> {
        let mut transfers = Vec::new();
        if let Some((peer, bytes)) = send {
            transfers.push(Transfer { peer, tag: 1, bytes: Bytes::Send(bytes) });
        }
        if let Some((peer, bytes)) = receive {
            transfers.push(Transfer { peer, tag: 1, bytes: Bytes::Receive(bytes) });
        }
        Ok(self.mesh.transfer(&mut transfers)?)
    }

    /// Returns the bytes of the part of an array that a process reduces.
    fn part(&self, size: usize, index: usize) -> Range<usize> {
        let begin = |index: usize| size / 4 * index / self.count * 4;
        begin(index)..begin(index + 1)
    }
}

fn add(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.chunks_exact_mut(4).zip(from.chunks_exact(4)) {
        let value = |bytes: &[u8]| f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let sum = value(to) + value(from);
        to.copy_from_slice(&sum.to_ne_bytes());
    }
}

/// Every process sends its array to all others.
fn direct(node: &Node<'_>, data: &mut [u8]) -> Outcome<()> {
    let mut received = vec![vec![0; data.len()]; node.count];
    let mut transfers = Vec::new();
    for (peer, bytes) in received.iter_mut().enumerate().filter(|(peer, _)| *peer != node.index) {
        transfers.push(Transfer { peer, tag: 2, bytes: Bytes::Send(data) });
        transfers.push(Transfer { peer, tag: 2, bytes: Bytes::Receive(bytes) });
    }
    node.mesh.transfer(&mut transfers)?;
    node.others().for_each(|peer| add(data, &received[peer]));
    Ok(())
}

/// Every process reduces a part of the array, and sends it to all others.
fn parts(node: &Node<'_>, data: &mut [u8]) -> Outcome<()> {
    let own = node.part(data.len(), node.index);
    let mut received = vec![vec![0; own.len()]; node.count];
    let mut transfers = Vec::new();
    for (peer, bytes) in received.iter_mut().enumerate().filter(|(peer, _)| *peer != node.index) {
        let part = &data[node.part(data.len(), peer)];
        transfers.push(Transfer { peer, tag: 3, bytes: Bytes::Send(part) });
        transfers.push(Transfer { peer, tag: 3, bytes: Bytes::Receive(bytes) });
    }
    node.mesh.transfer(&mut transfers)?;
    let mut sum = data[own].to_vec();
    node.others().for_each(|peer| add(&mut sum, &received[peer]));
    let size = data.len();
    let mut rest = data;
    let mut transfers = Vec::new();
    for peer in 0..node.count {
        let part;
        (part, rest) = rest.split_at_mut(node.part(size, peer).len());
        if peer == node.index {
            part.copy_from_slice(&sum);
            continue;
        }
        transfers.push(Transfer { peer, tag: 4, bytes: Bytes::Send(&sum) });
        transfers.push(Transfer { peer, tag: 4, bytes: Bytes::Receive(part) });
    }
    Ok(node.mesh.transfer(&mut transfers)?)
}

/// Every process sends a part of the array to the next one in each step, first to reduce it and then to distribute the sum.
fn ring(node: &Node<'_>, data: &mut [u8]) -> Outcome<()> {
    let (n, size) = (node.count, data.len());
    let (next, previous) = ((node.index + 1) % n, (node.index + n - 1) % n);
    for step in 0..2 * (n - 1) {
        let sent = node.part(size, (node.index + 2 * n - step) % n);
        let arriving = node.part(size, (node.index + 2 * n - 1 - step) % n);
        let mut received = vec![0; arriving.len()];
        node.shift(Some((next, &data[sent])), Some((previous, &mut received)))?;
        if step < n - 1 {
            add(&mut data[arriving], &received);
        } else {
            data[arriving].copy_from_slice(&received);
        }
    }
    Ok(())
}

/// A binomial tree reduces the arrays to process 0, and distributes the sum.
fn tree(node: &Node<'_>, data: &mut [u8]) -> Outcome<()> {
    along_tree(node, &(0..node.count).collect::<Vec<_>>(), data)
}

fn along_tree(node: &Node<'_>, members: &[usize], data: &mut [u8]) -> Outcome<()> {
    let own = members.iter().position(|member| *member == node.index).ok_or("not a member")?;
    let mut distances = Vec::new();
    let mut distance = 1;
    while distance < members.len() {
        distances.push(distance);
        distance *= 2;
    }
    for distance in &distances {
        if own % (2 * distance) == *distance {
            node.shift(Some((members[own - distance], data)), None)?;
            break;
        }
        if let Some(child) = members.get(own + distance) {
            let mut received = vec![0; data.len()];
            node.shift(None, Some((*child, &mut received)))?;
            add(data, &received);
        }
    }
    for distance in distances.iter().rev() {
        if own % (2 * distance) == *distance {
            node.shift(None, Some((members[own - distance], data)))?;
        } else if own % (2 * distance) == 0
            && let Some(child) = members.get(own + distance)
        {
            node.shift(Some((*child, data)), None)?;
        }
    }
    Ok(())
}

/// The processes of a machine reduce their arrays to one of them, these exchange their sums directly, and each distributes the sum.
fn hierarchical(node: &Node<'_>, data: &mut [u8]) -> Outcome<()> {
    let leader = node.index / GROUP * GROUP;
    let members: Vec<usize> = (leader..(leader + GROUP).min(node.count)).collect();
    if node.index != leader {
        node.shift(Some((leader, data)), None)?;
        return node.shift(None, Some((leader, data)));
    }
    let mut received = vec![0; data.len()];
    for member in &members[1..] {
        node.shift(None, Some((*member, &mut received)))?;
        add(data, &received);
    }
    let leaders: Vec<usize> = (0..node.count).step_by(GROUP).collect();
    let mut sums = vec![vec![0; data.len()]; leaders.len()];
    let mut transfers = Vec::new();
    for (&peer, bytes) in leaders.iter().zip(&mut sums).filter(|(peer, _)| **peer != leader) {
        transfers.push(Transfer { peer, tag: 5, bytes: Bytes::Send(data) });
        transfers.push(Transfer { peer, tag: 5, bytes: Bytes::Receive(bytes) });
    }
    node.mesh.transfer(&mut transfers)?;
    leaders.iter().zip(&sums).filter(|(peer, _)| **peer != leader).for_each(|(_, sum)| add(data, sum));
    members[1..].iter().try_for_each(|member| node.shift(Some((*member, data)), None))
}
