//! The one place where the engine reads a clock. A test clock stands until it is set.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use wf_core::Millis;
use wf_store::TestClock;

use crate::options::{ClockMode, Time};

pub struct Clock {
    /// `None`: the given one.
    test: Option<Mutex<Test>>,
    /// `None`: the system's.
    given: Option<Time>,
}

/// Where a test clock stands.
#[derive(Clone, Copy)]
pub struct Test {
    now: Millis,
    /// It ticks on from `now` since then.
    ticking_since: Option<Instant>,
}

impl Clock {
    /// A store that was used with a test clock goes on from where that stood, but never behind its last command.
    pub fn new(mode: ClockMode, stored: Option<TestClock>, last_time: Millis) -> Clock {
        let start = match mode {
            ClockMode::System => return Clock { test: None, given: None },
            ClockMode::Given(time) => return Clock { test: None, given: Some(time) },
            ClockMode::Test { start } => start,
        };
        let (now, frozen) = stored.map_or((start, true), |stored| (stored.now, stored.frozen));
        Clock { test: Some(Mutex::new(Test::at(now.max(last_time), frozen))), given: None }
    }

    pub fn is_test(&self) -> bool {
        self.test.is_some()
    }

    pub fn now(&self) -> Millis {
        match (&self.test, &self.given) {
            (Some(test), _) => lock(test).now(),
            (None, Some(time)) => (time.0)(),
            (None, None) => system_now(),
        }
    }

    /// Time passes without being set: something may fall due by itself.
    pub fn ticks(&self) -> bool {
        self.test.as_ref().is_none_or(|test| lock(test).ticking_since.is_some())
    }

    /// Sets it, and says where it stood: the turn that sets it may fail.
    pub fn set(&self, now: Millis, frozen: bool) -> Option<Test> {
        self.test.as_ref().map(|test| std::mem::replace(&mut *lock(test), Test::at(now, frozen)))
    }

    pub fn restore(&self, before: Test) {
        if let Some(test) = &self.test {
            *lock(test) = before;
        }
    }

    /// What the store holds after the partition was taken again: a change whose outcome was not known may stand there.
    pub fn adopt(&self, stored: TestClock) {
        if let Some(test) = &self.test {
            let mut test = lock(test);
            let now = if stored.frozen { stored.now } else { stored.now.max(test.now()) };
            if stored.frozen || test.ticking_since.is_none() || now > test.now() {
                *test = Test::at(now, stored.frozen);
            }
        }
    }

    /// As the partition's row keeps it.
    pub fn stored(&self) -> Option<TestClock> {
        let test = self.test.as_ref().map(|test| *lock(test))?;
        Some(TestClock { now: test.now(), frozen: test.ticking_since.is_none() })
    }
}

impl Test {
    fn at(now: Millis, frozen: bool) -> Test {
        Test { now, ticking_since: (!frozen).then(Instant::now) }
    }

    fn now(&self) -> Millis {
        let ticked = self.ticking_since.map_or(0, |since| since.elapsed().as_millis() as Millis);
        self.now.saturating_add(ticked)
    }
}

fn system_now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as Millis)
}

/// A poisoned lock only says that another thread panicked; the value is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
