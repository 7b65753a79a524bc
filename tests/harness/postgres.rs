//! Keeps the store of a world in Postgres.

use runner_store::{Address, Store};

use crate::World;

impl World {
    /// Configures the world to keep its store in the Postgres database at `url`, and opens the store.
    ///
    /// # Panics
    /// If the store cannot be opened.
    pub async fn keep_store_at(&self, url: &str) -> Store {
        let sqlite = format!("sqlite://{}/store/sluice.db", self.path().display());
        self.reconfigure(&sqlite, url);
        let address = Address::parse(url, None).unwrap();
        Store::open(&address, self.installation().parse().unwrap()).await.unwrap()
    }
}
