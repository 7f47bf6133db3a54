//! A machine that freezes takes front, keeper and command with it. Then only the fence protects.

use crate::rig::{Scene, Store, freeze, text, until, wake};

const SEAL: [&str; 2] = ["--seal", "sqlite:payments.db#payments"];

/// Says that it is ready, waits until it may pay, and pays once. `-bail`: without it the shell
/// would go on after the refusal.
const PAYER: &str = r#"
    echo "$LEASEHOLD_TOKEN" >"token.$LEASEHOLD_TERM"
    until [ -e "pay.$LEASEHOLD_TERM" ]; do sleep 0.02; done
    sqlite3 -batch -init /dev/null -bail payments.db 2>"paid.$LEASEHOLD_TERM" <<SQL
.timeout 10000
BEGIN IMMEDIATE;
INSERT INTO leasehold_admit VALUES ('payments', '$LEASEHOLD_TOKEN', '', '');
INSERT INTO payment VALUES ($LEASEHOLD_TERM);
COMMIT;
SQL
    echo "sqlite3 ended with $?" >>"paid.$LEASEHOLD_TERM"
    sleep 1000"#;

#[test]
fn all_of_a_holder_stopped_and_woken_is_refused_by_the_fence() {
    let scene = Scene::new();
    let payments = scene.payments();
    let old = scene.run_sh(&SEAL, PAYER);
    ready(&scene, 1);
    let command: Vec<_> = old.tree().iter().map(|process| process.pid).collect();
    let both = [old.front(), old.keeper()];
    freeze(&[&both[..], &command].concat(), &[&scene.store(), &payments]);

    let new = scene.run_sh(&SEAL, PAYER);
    ready(&scene, 2);
    new.says("acquired, term 2");
    assert_eq!(floor(&scene), "2");

    // The command first, before anyone can tell it that it is late.
    allow(&scene, 1);
    wake(&command);
    let refusal = outcome(&scene, 1);
    assert!(refusal.contains("leasehold: Fenced"), "{refusal}");
    assert!(!refusal.contains("ended with 0"), "{refusal}");
    allow(&scene, 2);
    assert_eq!(outcome(&scene, 2), "sqlite3 ended with 0\n");
    assert_eq!(paid_terms(&payments), [2]);

    wake(&both);
    let ended = old.end();
    assert_eq!(ended.code, 122, "what was frozen was not dead in time: {ended:?}");
    assert!(ended.stderr.contains("the command "), "{ended:?}");
}

/// A floor that only a later holder of the same lease can raise ends the lease of the earlier one
/// before it begins to work.
#[test]
fn a_holder_does_not_begin_under_a_term_that_the_fence_has_left_behind() {
    let scene = Scene::new();
    scene.payments();
    let first = scene.run_sh(&SEAL, "echo $LEASEHOLD_TOKEN").end();
    assert_eq!(first.code, 0, "{first:?}");
    let mut parts = first.stdout.trim().split('/');
    let later = format!("{}/7/{}", parts.next().unwrap(), "5".repeat(16));
    let seal = scene.leasehold(["fence", "seal", "./payments.db", "payments", &later]).end();
    assert_eq!(seal.code, 0, "{seal:?}");

    let second = scene.run_sh(&SEAL, "echo $LEASEHOLD_TERM").end();
    assert_eq!((second.code, second.stdout.as_str()), (0, "8\n"), "{second:?}");
    assert!(second.stderr.contains("a later holder has sealed it, with term 7"), "{second:?}");
}

fn ready(scene: &Scene, term: u64) {
    let token = scene.path(&format!("token.{term}"));
    until(&format!("the command of term {term}"), || token.exists().then_some(()));
}

fn allow(scene: &Scene, term: u64) {
    std::fs::write(scene.path(&format!("pay.{term}")), "").unwrap();
}

/// What the engine said to the payment of this term.
fn outcome(scene: &Scene, term: u64) -> String {
    let said = scene.path(&format!("paid.{term}"));
    until("a payment's end", || Some(text(&said)).filter(|said| said.contains("sqlite3 ended")))
}

fn floor(scene: &Scene) -> String {
    let status = ["fence", "status", "./payments.db", "payments", "--json"];
    let status = scene.leasehold(status).end().json();
    status["floor"].as_str().unwrap().to_owned()
}

fn paid_terms(payments: &Store) -> Vec<i64> {
    let connection = payments.open();
    let mut select = connection.prepare("SELECT term FROM payment").unwrap();
    let terms = select.query_map([], |row| row.get(0)).unwrap();
    terms.map(Result::unwrap).collect()
}
