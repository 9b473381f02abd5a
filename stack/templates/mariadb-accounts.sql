CREATE DATABASE IF NOT EXISTS run_everest_modul CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
CREATE USER IF NOT EXISTS 'everest_owner'@'127.0.0.1';
ALTER USER 'everest_owner'@'127.0.0.1' IDENTIFIED BY '${owner_password}';
GRANT ALL PRIVILEGES ON `run\_everest\_modul%`.* TO 'everest_owner'@'127.0.0.1' WITH GRANT OPTION;
GRANT PROCESS ON *.* TO 'everest_owner'@'127.0.0.1';
-- Of a stack before there was an account per program.
DROP USER IF EXISTS 'everest_worker'@'127.0.0.1';
