mod catalog_support;
use catalog_support::*;
use std::time::Instant;
#[test]
fn startup() {
    let world = World::new();
    let account = world.open();
    let t = Instant::now();
    for d in 0..5 { let db = wait(account.create_database(&format!("d{d}"), None)).unwrap();
      for c in 0..1000 { wait(account.create_container(&db, plain(&format!("c{c}")), None)).unwrap(); } }
    println!("create 5000: {:?}", t.elapsed());
    drop(account);
    for _ in 0..3 { let t = Instant::now(); let a = world.open(); println!("open 5000: {:?}", t.elapsed());
      let t = Instant::now(); for i in 0..100000u32 { let d = a.database(orrery_engine::Ref::Name(["d0","d1","d2"][(i%3) as usize])).unwrap(); std::hint::black_box(d.container(orrery_engine::Ref::Name("c77")).unwrap()); } println!("lookup pair: {:?}", t.elapsed()/100000);
      drop(a); }
}
