//! Objects destroyed in every order, and used from many threads.

use crate::host::*;

#[test]
fn buffers_and_executables_outlive_their_client() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0; 4]);
    let loaded = client.compile("negate").unwrap();
    let executable = loaded.get();
    drop(client);
    let launch = loaded.run(&[&buffer]).unwrap();
    drop(loaded);
    drop(buffer);
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), [-1.0; 4]);
    let args = call!(PJRT_Executable_Name(PJRT_Executable_Name_Args { executable })).unwrap();
    assert_eq!(text(args.executable_name, args.executable_name_size), "negate");
    call!(PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args { executable })).unwrap();
}

#[test]
fn an_execution_outlives_everything() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0; 4]);
    let loaded = client.compile("later 401").unwrap();
    let launch = loaded.run(&[&buffer]).unwrap();
    let outcome = on_ready(launch.events[0]);
    drop((launch, loaded, buffer, client));
    assert_eq!(crate::dummy::run_queue(401), 1);
    outcome.recv().unwrap().unwrap();
}

#[test]
fn threads_share_buffers_and_executables() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0; 4]);
    let program = client.compile("negate").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let launch = program.run(&[&buffer]).unwrap();
                    launch.outputs[0][0].wait().unwrap();
                    assert_eq!(launch.outputs[0][0].numbers().unwrap(), [-1.0; 4]);
                }
            });
        }
    });
}

#[test]
fn of_threads_that_donate_the_same_buffer_one_wins() {
    let client = Client::new(&[]);
    let program = client.compile("donate").unwrap();
    for _ in 0..50 {
        let buffer = client.upload(0, &[1.0; 4]);
        let wins: usize = std::thread::scope(|scope| {
            let run = || usize::from(program.run(&[&buffer]).is_ok());
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(wins, 1);
    }
}

#[test]
fn clients_come_and_go() {
    for _ in 0..20 {
        let client = Client::new(&[]);
        client.upload(0, &[1.0; 4]).wait().unwrap();
    }
}
