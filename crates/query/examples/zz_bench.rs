use orrery_model::*; use orrery_query::*;
fn main(){
 let docs: Vec<Vec<u8>> = (0..50_000).map(|i| { let s=format!(r#"{{"id":"d{i}","deviceId":"dev{}","metricType":"{}","metricValue":{},"pad":"{}","nested":{{"a":{{"b":{}}}}},"tags":["x","y","z{}"],"f1":1,"f2":2,"f3":3,"f4":4,"f5":"abcdef","f6":true}}"#, i%100, if i%3==0 {"Temperature"} else {"Humidity"}, i%200, "p".repeat(600), i, i); parse_json(s.as_bytes(),&ParseOptions::default()).unwrap()}).collect();
 for q in ["SELECT * FROM c WHERE c.metricType = 'Temperature' AND c.metricValue > 198","SELECT VALUE COUNT(1) FROM c","SELECT c.deviceId, COUNT(1) AS n, AVG(c.metricValue) AS a FROM c GROUP BY c.deviceId","SELECT TOP 10 * FROM c ORDER BY c.metricValue DESC","SELECT VALUE c.nested.a.b FROM c WHERE ARRAY_CONTAINS(c.tags, 'z77')","SELECT c.id, t FROM c JOIN t IN c.tags WHERE t = 'z5'","SELECT VALUE c.id FROM c WHERE CONTAINS(c.f5, 'cde') AND c.f1 + c.f2 = 4", "SELECT * FROM c"]{
  let query=orrery_sql::parse_query(q).unwrap(); let p=Prepared::new(&query,&[],&QueryEnv::default()).unwrap();
  let t=std::time::Instant::now(); let rows=run_all(&p, docs.iter().map(|d| RowView::plain(Raw::document(d).unwrap()))).unwrap();
  println!("{:6.0} ns/item {} rows  {}", t.elapsed().as_nanos() as f64/docs.len() as f64, rows.len(), q);
 }
 let t=std::time::Instant::now(); for _ in 0..10000 { let query=orrery_sql::parse_query("SELECT * FROM c WHERE c.metricType = 'Temperature' AND c.metricValue > 198").unwrap(); std::hint::black_box(Prepared::new(&query,&[],&QueryEnv::default()).unwrap()); } println!("parse+prepare {} ns", t.elapsed().as_nanos()/10000);
}
