//! `leasehold run` as a job of a shell: the terminal's keys do what they do with any job, and
//! never keep a lease without its command, or a command without its lease.

use rustix::process::Signal;

use crate::rig::{Process, Scene, TTL, Terminal, now, signal, until};

#[test]
fn a_command_that_reads_the_terminal_gets_it_and_gives_it_back() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal.runs("-- sh -c 'read line; echo \"got:$line\"; exit 5'");
    terminal.shows("acquired, term 1");
    terminal.types("hello\n");
    terminal.shows("got:hello\r\n");
    terminal.expect(5);
}

/// Not the input of the process, but the terminal itself, as a program that asks for a password.
#[test]
fn a_command_whose_stdin_is_no_terminal_gets_the_terminal_too() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal.runs("-- sh -c 'read line <>/dev/tty; echo \"got:$line\"' </dev/null");
    terminal.shows("acquired, term 1");
    terminal.types("secret\n");
    terminal.shows("got:secret\r\n");
    terminal.expect(0);
}

#[test]
fn a_command_that_is_interrupted_ends_and_its_lease_is_released() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal.runs("-- sleep 1000");
    command(&terminal, "sleep");
    terminal.types(Terminal::CTRL_C);
    terminal.expect(130);
    assert_eq!(scene.leasehold(["status", "job", "--store", "./leases.db"]).end().code, 0);
    assert!(!terminal.screen().contains("interrupted again"), "{}", terminal.screen());
}

#[test]
fn a_second_interrupt_ends_a_command_that_does_not_heed_the_first() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal
        .runs("--grace 1s -- sh -c 'trap \"echo hea\"\"rd\" INT; echo rea\"\"dy; while :; do sleep 0.1; done'");
    terminal.shows("ready\r\n");
    terminal.types(Terminal::CTRL_C);
    // Two that come at once are one to whoever hears them.
    terminal.shows("heard\r\n");
    terminal.types(Terminal::CTRL_C);
    terminal.shows("interrupted again; the command is ended, killed after 1s");
    terminal.expect(143);
}

#[test]
fn a_third_interrupt_kills_it_without_waiting_for_the_grace() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal.runs(
        "--ttl 300s --grace 200s -- sh -c 'trap \"echo hea\"\"rd\" INT TERM; echo rea\"\"dy; while :; do sleep 0.1; done'",
    );
    terminal.shows("ready\r\n");
    terminal.types(Terminal::CTRL_C);
    // Two that come at once are one to whoever hears them.
    terminal.shows("heard\r\n");
    terminal.types(Terminal::CTRL_C);
    terminal.shows("interrupted again");
    terminal.types(Terminal::CTRL_C);
    terminal.shows("interrupted once more; the command is killed");
    terminal.expect(137);
}

#[test]
fn a_stopped_job_is_stopped_whole_and_goes_on_under_the_same_term() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal.runs("--ttl 60s -- sh -c 'sleep 1000; echo went on; exit 4'");
    let command = command(&terminal, "sleep");
    let front = front(&terminal);
    terminal.types(Terminal::CTRL_Z);
    terminal.shows("Stopped");
    let all_stopped = || front.is_stopped_now() && command.is_stopped_now();
    until("all to stop", || all_stopped().then_some(()));
    terminal.types("fg\n");
    until("the front to go on", || (!front.is_stopped_now()).then_some(()));
    until("the command to go on", || (!command.is_stopped_now()).then_some(()));
    signal(command.pid, Signal::KILL);
    terminal.shows("went on\r\n");
    terminal.expect(4);
    assert_eq!(scene.store().row().unwrap().term(), 1);
}

/// The front is stopped and renews nothing: at the deadline its keeper ends the command.
#[test]
fn a_job_that_stays_stopped_loses_its_lease_and_does_not_go_on() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal.runs("--ttl 3s --grace 500ms -- sh -c 'sleep 1000; echo went on'");
    let command = command(&terminal, "sleep");
    terminal.types(Terminal::CTRL_Z);
    terminal.shows("Stopped");
    let rival = scene.run(&[], &["sh", "-c", "echo $LEASEHOLD_TERM"]);
    let renewed = scene.store().row().unwrap().written;
    until("the death of the command", || (!command.is_alive()).then_some(()));
    assert!(now() < renewed + TTL, "it was dead in time");
    let rival = rival.end();
    assert_eq!((rival.code, rival.stdout.as_str()), (0, "2\n"), "{rival:?}");
    terminal.types("fg\n");
    terminal.shows("lost; the command ended in time, under term 1");
    terminal.expect(120);
    assert!(!terminal.screen().contains("went on\r\n"), "{}", terminal.screen());
}

#[test]
fn a_command_that_has_the_terminal_is_stopped_and_gets_it_again() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal.runs("--ttl 60s -- cat");
    terminal.shows("acquired, term 1");
    terminal.types("one\n");
    terminal.shows("one\r\none\r\n");
    terminal.types(Terminal::CTRL_Z);
    terminal.shows("Stopped");
    terminal.types("fg\n");
    terminal.shows("run job");
    terminal.types("two\n");
    terminal.shows("two\r\ntwo\r\n");
    terminal.types(Terminal::CTRL_D);
    terminal.expect(0);
}

#[test]
fn a_job_in_the_background_that_reads_the_terminal_waits_for_it() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal.runs("--ttl 60s -- cat &");
    let cat = command(&terminal, "cat");
    let front = front(&terminal);
    until("the job to stop", || (front.is_stopped_now() && cat.is_stopped_now()).then_some(()));
    // The shell hears of it a little later, and lets no job go on that it believes to be running.
    until("the shell to know", || {
        terminal.types("jobs; echo the\"\"se\n");
        terminal.shows("these\r\n");
        terminal.screen().contains("Stopped").then_some(())
    });
    terminal.types("fg\n");
    terminal.shows("run job");
    until("the job to go on", || (!front.is_stopped_now()).then_some(()));
    terminal.types("hello\n");
    terminal.shows("hello\r\nhello\r\n");
    terminal.types(Terminal::CTRL_D);
    terminal.expect(0);
}

/// The shell sees its job stopped only when the process that it started is.
#[test]
fn a_script_around_it_is_stopped_with_it() {
    let scene = Scene::new();
    std::fs::write(
        scene.path("around.sh"),
        "$LEASEHOLD run job --store ./leases.db --ttl 60s -- cat\necho \"inner $?\"\n",
    )
    .unwrap();
    let mut terminal = scene.terminal();
    terminal.types("sh around.sh\n");
    terminal.shows("acquired, term 1");
    terminal.types("one\n");
    terminal.shows("one\r\none\r\n");
    terminal.types(Terminal::CTRL_Z);
    terminal.shows("Stopped");
    terminal.types("fg\n");
    terminal.shows("sh around.sh");
    terminal.types("two\n");
    terminal.shows("two\r\ntwo\r\n");
    terminal.types(Terminal::CTRL_D);
    terminal.shows("inner 0\r\n");
}

#[test]
fn a_shell_under_the_lease_controls_jobs_of_its_own() {
    let scene = Scene::new();
    let mut terminal = scene.terminal();
    terminal.runs("--ttl 60s -- env PS1='INNER>' bash --norc --noprofile -i");
    terminal.shows("INNER>");
    terminal.types("sleep 1000\n");
    command(&terminal, "sleep");
    terminal.types(Terminal::CTRL_Z);
    terminal.shows("Stopped");
    terminal.types("exit 9\n");
    terminal.shows("There are stopped jobs");
    terminal.types("exit 9\n");
    terminal.expect(9);
    let sleeps = terminal.shell().tree().iter().any(|one| one.runs("sleep"));
    assert!(!sleeps, "what it left behind is ended");
}

#[test]
fn whoever_waits_is_stopped_and_withdrawn_by_the_keys() {
    let scene = Scene::new();
    let holder = scene.run(&[], &["sleep", "1000"]);
    holder.says("acquired");
    let mut terminal = scene.terminal();
    terminal.runs("-- echo ran");
    terminal.shows("waiting");
    terminal.types(Terminal::CTRL_Z);
    terminal.shows("Stopped");
    terminal.types("fg\n");
    terminal.shows("run job");
    let front = front(&terminal);
    until("it to go on", || (!front.is_stopped_now()).then_some(()));
    terminal.types(Terminal::CTRL_C);
    terminal.expect(130);
    assert!(!terminal.screen().contains("\nran"), "{}", terminal.screen());
}

/// The command as it runs under the `run` in this terminal.
fn command(terminal: &Terminal, program: &str) -> Process {
    until(program, || terminal.shell().tree().into_iter().find(|process| process.runs(program)))
}

/// The `run` in this terminal.
fn front(terminal: &Terminal) -> Process {
    until("the front", || terminal.shell().tree().into_iter().find(Process::is_front))
}
